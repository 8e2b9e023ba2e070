-- Wireshark dissector of Causeway's wire format, version 9 (dataplane/WIRE.md; types from 16 on: mcast/WIRE.md).
-- tshark -X lua_script:dataplane/wire/causeway.lua -r capture.pcap -O causeway
-- Packets are told by the UDP ports of processes and gateways, or by "Decode As" for any other; a heuristic finds them
-- on every port that no other protocol has.

local causeway = Proto("causeway", "Causeway")
local VERSION = 9

local types = {
  "HELLO", "HELLO_REPLY", "DATA", "ACK", "PROBE", "REJECT", "BYE", "TRIAL",
  [16] = "MCAST_DATA", [17] = "MCAST_STATE", [18] = "MCAST_ACK", [19] = "MCAST_NAK", [20] = "MCAST_FLOOD_PROBE",
}
local kinds = {"PUT", "PART", "VOID", "GET", "ASK", "GRANT", "RECALL", "RETURN", "RDMA", "CHUNK", "VOID_REPLY"}
local pair_kinds = {"OFFER", "ACCEPT", "NONE"}
local waits = {[0] = "spins", [1] = "sleeps", [2] = "naps"}
local sizes = {PUT = 32, PART = 48, VOID = 8, GET = 56, ASK = 8, GRANT = 8, RECALL = 8, RETURN = 8, RDMA = 8, CHUNK = 56, VOID_REPLY = 16}
local codecs = {"run", "lorenzo", "dfcm", "lz4", "shuffle", "zstd"}

local F = {
  version = ProtoField.uint8("causeway.version", "Version"),
  type = ProtoField.uint8("causeway.type", "Type", base.DEC, types),
  flags = ProtoField.uint16("causeway.flags", "Flags", base.HEX),
  waiting = ProtoField.uint16("causeway.flags.waiting", "Sender", base.DEC, waits, 0x3),
  ack_now = ProtoField.bool("causeway.flags.ack_now", "Acknowledge now", 16, nil, 0x4),
  encrypted = ProtoField.bool("causeway.flags.encrypted", "Encrypted", 16, nil, 0x8),
  summed = ProtoField.bool("causeway.flags.summed", "UDP checksum covers the data", 16, nil, 0x10),
  rdma = ProtoField.bool("causeway.flags.rdma", "RDMA device", 16, nil, 0x20),
  kept = ProtoField.bool("causeway.flags.kept", "Medium keeps the data", 16, nil, 0x40),
  flow = ProtoField.uint32("causeway.flow", "Flow"),
  number = ProtoField.uint32("causeway.number", "Packet number"),
  timestamp = ProtoField.uint32("causeway.timestamp", "Timestamp (16 ns)"),
  acknowledged = ProtoField.uint32("causeway.acknowledged", "Acknowledged below"),
  echo = ProtoField.uint32("causeway.echo", "Echo"),
  echo_delay = ProtoField.uint16("causeway.echo_delay", "Echo delay (256 ns)"),
  payload_bytes = ProtoField.uint16("causeway.payload_bytes", "Payload bytes"),
  checksum = ProtoField.uint32("causeway.checksum", "Payload CRC-32C", base.HEX),
  tag = ProtoField.uint64("causeway.tag", "Tag", base.HEX),
  -- sealed
  sealed_flow = ProtoField.uint32("causeway.sealed.flow", "Flow", base.DEC, nil, 0x00ffffff),
  phase = ProtoField.uint32("causeway.sealed.phase", "Which of its keys", base.HEX, nil, 0xff000000),
  count = ProtoField.uint64("causeway.sealed.count", "Count"),
  nonce = ProtoField.bytes("causeway.sealed.nonce", "Nonce"),
  secret = ProtoField.bytes("causeway.sealed.secret", "Encrypted"),
  mac = ProtoField.bytes("causeway.sealed.mac", "MAC"),
  -- set-up
  session = ProtoField.uint64("causeway.hello.session", "Session", base.HEX),
  peer_session = ProtoField.uint64("causeway.hello.peer_session", "Receiver's session", base.HEX),
  incarnation = ProtoField.uint64("causeway.hello.incarnation", "Incarnation", base.HEX),
  pool_token = ProtoField.uint64("causeway.hello.pool_token", "Message pool", base.HEX),
  pool_slot_bytes = ProtoField.uint32("causeway.hello.pool_slot_bytes", "Message slot bytes"),
  hello_flow = ProtoField.uint32("causeway.hello.flow", "Sender's flow"),
  data_number = ProtoField.uint32("causeway.hello.data_number", "First data number"),
  control_number = ProtoField.uint32("causeway.hello.control_number", "First control number"),
  sender_ip = ProtoField.ipv6("causeway.hello.sender_ip", "Sender IP"),
  receiver_ip = ProtoField.ipv6("causeway.hello.receiver_ip", "Receiver IP"),
  sender_port = ProtoField.uint16("causeway.hello.sender_port", "Sender port"),
  receiver_port = ProtoField.uint16("causeway.hello.receiver_port", "Receiver port"),
  sender_mac = ProtoField.ether("causeway.hello.sender_mac", "Sender MAC"),
  payload_bytes_max = ProtoField.uint16("causeway.hello.payload_bytes_max", "Longest payload"),
  packet_window = ProtoField.uint32("causeway.hello.packet_window", "Packet window"),
  put_window = ProtoField.uint32("causeway.hello.put_window", "Put window"),
  medium = ProtoField.uint32("causeway.hello.medium", "Medium"),
  -- frames
  pair_kind = ProtoField.uint8("causeway.rdma.kind", "Of the queue pair", base.DEC, pair_kinds),
  pair_reads = ProtoField.uint8("causeway.rdma.reads", "READs answered at a time"),
  pair_lid = ProtoField.uint16("causeway.rdma.lid", "LID", base.HEX),
  pair_incarnation = ProtoField.uint32("causeway.rdma.incarnation", "Incarnation"),
  pair_received = ProtoField.uint64("causeway.rdma.received", "Received by the pair before"),
  pair_gid = ProtoField.ipv6("causeway.rdma.gid", "GID"),
  pair_number = ProtoField.uint32("causeway.rdma.number", "Number"),
  pair_first = ProtoField.uint32("causeway.rdma.first", "First packet number"),
  pair_mtu_bytes = ProtoField.uint32("causeway.rdma.mtu_bytes", "MTU"),
  pair_previous = ProtoField.uint32("causeway.rdma.previous", "Incarnation of the pair before"),
  kind = ProtoField.uint8("causeway.frame.kind", "Kind", base.DEC, kinds),
  frame_flags = ProtoField.uint8("causeway.frame.flags", "Flags", base.HEX),
  length = ProtoField.uint16("causeway.frame.length", "Length"),
  put_number = ProtoField.uint32("causeway.frame.put_number", "Put number"),
  predecessor = ProtoField.uint16("causeway.put.predecessor", "Predecessor in the lane, numbers back"),
  reply = ProtoField.uint16("causeway.put.reply", "Answers get"),
  lane = ProtoField.uint32("causeway.put.lane", "Lane", base.DEC, nil, 0xfff00000),
  tag20 = ProtoField.uint32("causeway.put.tag", "Tag", base.DEC, nil, 0x000fffff),
  token = ProtoField.uint64("causeway.put.token", "Region token", base.HEX),
  offset = ProtoField.uint64("causeway.put.offset", "Offset"),
  position = ProtoField.uint64("causeway.part.position", "Position"),
  total = ProtoField.uint64("causeway.part.total", "Bytes of the put"),
  raw_bytes = ProtoField.uint16("causeway.chunk.raw_bytes", "Bytes that it stands for"),
  codec = ProtoField.uint8("causeway.chunk.codec", "Codec", base.DEC, codecs),
  parameter = ProtoField.uint8("causeway.chunk.parameter", "Parameter", base.HEX),
  chunk_reserved = ProtoField.uint32("causeway.chunk.reserved", "Reserved", base.HEX),
  get_bytes = ProtoField.uint64("causeway.get.bytes", "Bytes"),
  local_token = ProtoField.uint64("causeway.get.local_token", "Local token", base.HEX),
  local_offset = ProtoField.uint64("causeway.get.local_offset", "Local offset"),
  slot = ProtoField.uint16("causeway.credit.slot", "Slot"),
  data = ProtoField.bytes("causeway.data", "Data"),
  -- acknowledgement, refusal
  from = ProtoField.uint32("causeway.ack.from", "From"),
  run_count = ProtoField.uint16("causeway.ack.run_count", "Runs"),
  ack_flags = ProtoField.uint16("causeway.ack.flags", "Flags", base.HEX),
  stop = ProtoField.bool("causeway.ack.flags.stop", "Stop", 16, nil, 0x1),
  ends = ProtoField.bool("causeway.ack.flags.end", "Nothing beyond", 16, nil, 0x2),
  sums = ProtoField.bool("causeway.ack.flags.sums", "Takes packets without CRC", 16, nil, 0x4),
  try = ProtoField.bool("causeway.ack.flags.try", "Wants a trial", 16, nil, 0x8),
  probe_turn = ProtoField.uint16("causeway.ack.flags.probe_turn", "Turn of the latest large probe", base.DEC, nil, 0x8000),
  probe_units = ProtoField.uint16("causeway.ack.flags.probe_units", "Its payload, in units of 8, from 1024 on of 64 bytes", base.DEC, nil, 0x7ff0),
  turn = ProtoField.uint8("causeway.probe.turn", "Turn"),
  duplicates = ProtoField.uint32("causeway.ack.duplicates", "Duplicates"),
  busy = ProtoField.uint32("causeway.ack.busy", "Busy turn (ns)"),
  missing = ProtoField.uint16("causeway.ack.missing", "Missing"),
  received = ProtoField.uint16("causeway.ack.received", "Received"),
  rejected = ProtoField.uint32("causeway.reject.number", "Refused packet"),
  rejected_put = ProtoField.uint32("causeway.reject.put_number", "Refused put"),
  -- multicast
  group_high = ProtoField.uint32("causeway.mcast.group_high", "High half of the group's id", base.HEX),
  author = ProtoField.uint16("causeway.mcast.author", "Author"),
  sender = ProtoField.uint16("causeway.mcast.sender", "Sender of the stream"),
  epoch = ProtoField.uint32("causeway.mcast.epoch", "Epoch"),
  mcast_reserved = ProtoField.uint32("causeway.mcast.reserved", "Reserved", base.HEX),
  round_trip = ProtoField.uint32("causeway.mcast.round_trip", "Round trip (256 ns)"),
  mcast_flags = ProtoField.uint16("causeway.mcast.flags", "Flags", base.HEX),
  long = ProtoField.bool("causeway.mcast.flags.long", "Long message", 16, nil, 0x1),
  pass_on = ProtoField.bool("causeway.mcast.flags.pass_on", "Passed on in the tree", 16, nil, 0x2),
  packed = ProtoField.bool("causeway.mcast.flags.packed", "With a chunk", 16, nil, 0x4),
  part = ProtoField.bool("causeway.mcast.flags.part", "A part of a packet", 16, nil, 0x8),
  part_index = ProtoField.uint16("causeway.mcast.part.index", "Part"),
  part_count = ProtoField.uint16("causeway.mcast.part.count", "Parts of the packet"),
  head_bytes = ProtoField.uint16("causeway.mcast.head_bytes", "Bytes in front of the chunk"),
  mcast_reserved16 = ProtoField.uint16("causeway.mcast.reserved16", "Reserved", base.HEX),
  mcast_lane_tag = ProtoField.uint32("causeway.mcast.lane_tag", "Lane and tag", base.HEX),
  place = ProtoField.uint32("causeway.mcast.place", "Short, or long, messages before"),
  message = ProtoField.uint64("causeway.mcast.message", "Messages before"),
  mcast_position = ProtoField.uint64("causeway.mcast.position", "Position"),
  mcast_total = ProtoField.uint64("causeway.mcast.total", "Bytes of the message"),
  next = ProtoField.uint64("causeway.mcast.next", "Next packet"),
  laggard = ProtoField.uint16("causeway.mcast.laggard", "Has the least"),
  pause = ProtoField.uint32("causeway.mcast.pause", "Longest pause of a receiver (256 ns)"),
  unreached = ProtoField.uint16("causeway.mcast.unreached", "Not reached by the group's address"),
  mcast_received = ProtoField.uint64("causeway.mcast.received", "Received below"),
  released = ProtoField.uint64("causeway.mcast.released", "Slots given back"),
  registered = ProtoField.uint64("causeway.mcast.registered", "Registrations made"),
  mcast_run_count = ProtoField.uint32("causeway.mcast.run_count", "Runs"),
  mcast_from = ProtoField.uint64("causeway.mcast.from", "From"),
  mcast_missing = ProtoField.uint16("causeway.mcast.run.missing", "Missing"),
  mcast_there = ProtoField.uint16("causeway.mcast.run.received", "Received"),
}
local list = {}
for _, field in pairs(F) do
  list[#list + 1] = field
end
causeway.fields = list

local malformed = ProtoExpert.new("causeway.malformed", "Malformed packet", expert.group.MALFORMED, expert.severity.ERROR)
local other_version = ProtoExpert.new("causeway.other_version", "Another version", expert.group.PROTOCOL, expert.severity.WARN)
causeway.experts = {malformed, other_version}

local function rows(tree, buffer, at, fields)
  for _, row in ipairs(fields) do
    tree:add_le(row[1], buffer(at, row[2]))
    at = at + row[2]
  end
  return at
end

local function hello(buffer, tree)
  if buffer:len() ~= 104 then
    tree:add_proto_expert_info(malformed, "a set-up packet has 104 bytes")
    return
  end
  local at = rows(tree, buffer, 0, {
    {F.session, 8}, {F.peer_session, 8}, {F.incarnation, 8}, {F.pool_token, 8}, {F.pool_slot_bytes, 4}, {F.hello_flow, 4},
    {F.data_number, 4}, {F.control_number, 4},
  })
  tree:add(F.sender_ip, buffer(at, 16))
  tree:add(F.receiver_ip, buffer(at + 16, 16))
  at = rows(tree, buffer, at + 32, {{F.sender_port, 2}, {F.receiver_port, 2}})
  tree:add(F.sender_mac, buffer(at, 6))
  rows(tree, buffer, at + 6, {{F.payload_bytes_max, 2}, {F.packet_window, 4}, {F.put_window, 4}, {F.medium, 4}})
end

local function frame(buffer, at, tree)
  local left = buffer:len() - at
  if left < 8 then
    tree:add_proto_expert_info(malformed, "less than a frame is left")
    return nil
  end
  local kind = kinds[buffer(at, 1):uint()]
  local length = buffer(at + 2, 2):le_uint()
  local size = kind and sizes[kind]
  local data = 0
  if kind == "PUT" or kind == "PART" or kind == "CHUNK" or kind == "RDMA" then
    data = length
  elseif kind == "GRANT" or kind == "RETURN" then
    data = 2 * length
  end
  if not kind or size + data > left then
    tree:add_proto_expert_info(malformed, "no such frame, or longer than the packet")
    return nil
  end
  local branch = tree:add(causeway, buffer(at, size + data), kind .. " " .. buffer(at + 4, 4):le_uint())
  rows(branch, buffer, at, {{F.kind, 1}, {F.frame_flags, 1}, {F.length, 2}, {F.put_number, 4}})
  if size >= 32 then
    rows(branch, buffer, at + 8, {{F.predecessor, 2}, {F.reply, 2}})
    branch:add_le(F.lane, buffer(at + 12, 4))
    branch:add_le(F.tag20, buffer(at + 12, 4))
    rows(branch, buffer, at + 16, {{F.token, 8}, {F.offset, 8}})
  end
  if kind == "PART" then
    rows(branch, buffer, at + 32, {{F.position, 8}, {F.total, 8}})
  elseif kind == "CHUNK" then
    rows(branch, buffer, at + 32, {{F.position, 8}, {F.total, 8}, {F.raw_bytes, 2}, {F.codec, 1}, {F.parameter, 1}, {F.chunk_reserved, 4}})
  elseif kind == "GET" then
    rows(branch, buffer, at + 32, {{F.get_bytes, 8}, {F.local_token, 8}, {F.local_offset, 8}})
  elseif kind == "GRANT" or kind == "RETURN" then
    for i = 0, length - 1 do
      branch:add_le(F.slot, buffer(at + 8 + 2 * i, 2))
    end
  elseif kind == "RDMA" and length == 48 then
    rows(branch, buffer, at + 8, {{F.pair_kind, 1}, {F.pair_reads, 1}, {F.pair_lid, 2}, {F.pair_incarnation, 4}, {F.pair_received, 8}})
    branch:add(F.pair_gid, buffer(at + 24, 16))
    rows(branch, buffer, at + 40, {{F.pair_number, 4}, {F.pair_first, 4}, {F.pair_mtu_bytes, 4}, {F.pair_previous, 4}})
  end
  if (kind == "PUT" or kind == "PART" or kind == "CHUNK") and length > 0 then
    branch:add(F.data, buffer(at + size, length))
  end
  local taken = size + data
  return at + taken + (-taken) % 8, kind
end

local function frames(buffer, tree)
  local at, names = 0, {}
  while at and at < buffer:len() do
    local kind
    at, kind = frame(buffer, at, tree)
    if kind then
      names[#names + 1] = kind
    end
  end
  return table.concat(names, " ", 1, math.min(#names, 4)) .. (#names > 4 and " .. (" .. #names .. ")" or "")
end

local function ack(buffer, tree)
  if buffer:len() < 16 or buffer:len() ~= 16 + 4 * buffer(4, 2):le_uint() then
    tree:add_proto_expert_info(malformed, "the runs do not fill the packet")
    return
  end
  rows(tree, buffer, 0, {{F.from, 4}, {F.run_count, 2}})
  local flags = tree:add_le(F.ack_flags, buffer(6, 2))
  flags:add_le(F.stop, buffer(6, 2))
  flags:add_le(F.ends, buffer(6, 2))
  flags:add_le(F.sums, buffer(6, 2))
  flags:add_le(F.try, buffer(6, 2))
  flags:add_le(F.probe_turn, buffer(6, 2))
  flags:add_le(F.probe_units, buffer(6, 2))
  rows(tree, buffer, 8, {{F.duplicates, 4}, {F.busy, 4}})
  for at = 16, buffer:len() - 4, 4 do
    rows(tree, buffer, at, {{F.missing, 2}, {F.received, 2}})
  end
end

-- What each type of multicast carries behind the prefix; DATA and NAK are followed by more.
local extensions = {
  MCAST_DATA = {
    {F.round_trip, 4}, {F.mcast_flags, 2}, {F.mcast_reserved16, 2}, {F.mcast_lane_tag, 4}, {F.place, 4}, {F.message, 8},
    {F.mcast_position, 8}, {F.mcast_total, 8},
  },
  MCAST_STATE = {
    {F.round_trip, 4}, {F.mcast_flags, 2}, {F.mcast_reserved16, 2}, {F.next, 8},
  },
  MCAST_ACK = {{F.laggard, 2}, {F.unreached, 2}, {F.pause, 4}, {F.mcast_received, 8}, {F.released, 8}, {F.registered, 8}},
  MCAST_NAK = {{F.mcast_run_count, 4}, {F.mcast_reserved, 4}, {F.mcast_from, 8}},
  MCAST_FLOOD_PROBE = {},
}
local extension_bytes = {MCAST_DATA = 56, MCAST_STATE = 32, MCAST_ACK = 48, MCAST_NAK = 32, MCAST_FLOOD_PROBE = 16}

-- Who has written it, and about whose stream, for the line of the packet; nil: malformed.
local function extension(buffer, tree, name)
  local fixed, bytes = extension_bytes[name], buffer:len()
  if name == "MCAST_NAK" and bytes >= fixed then
    fixed = fixed + 4 * buffer(16, 4):le_uint()
  end
  if bytes < fixed or (bytes > fixed and name ~= "MCAST_DATA") then
    tree:add_proto_expert_info(malformed, "a " .. name .. " has another length")
    return nil
  end
  rows(tree, buffer, 0, {{F.group_high, 4}, {F.author, 2}, {F.sender, 2}, {F.epoch, 4}, {F.mcast_reserved, 4}})
  local at = rows(tree, buffer, 16, extensions[name])
  if name == "MCAST_DATA" or name == "MCAST_STATE" then
    tree:add_le(F.long, buffer(20, 2))
    tree:add_le(F.pass_on, buffer(20, 2))
    tree:add_le(F.packed, buffer(20, 2))
    tree:add_le(F.part, buffer(20, 2))
  end
  if name == "MCAST_DATA" and bit.band(buffer(20, 2):le_uint(), 8) ~= 0 then
    if bytes < at + 8 then
      tree:add_proto_expert_info(malformed, "the part is missing")
      return nil
    end
    at = rows(tree, buffer, at, {{F.part_index, 2}, {F.part_count, 2}, {F.mcast_reserved, 4}})
  end
  if name == "MCAST_DATA" and bit.band(buffer(20, 2):le_uint(), 4) ~= 0 then
    if bytes < at + 8 then
      tree:add_proto_expert_info(malformed, "the chunk is missing")
      return nil
    end
    at = rows(tree, buffer, at, {{F.raw_bytes, 2}, {F.head_bytes, 2}, {F.codec, 1}, {F.parameter, 1}, {F.mcast_reserved16, 2}})
  end
  if name == "MCAST_DATA" and bytes > at then
    tree:add(F.data, buffer(at, bytes - at))
  end
  while name == "MCAST_NAK" and at < bytes do
    at = rows(tree, buffer, at, {{F.mcast_missing, 2}, {F.mcast_there, 2}})
  end
  return "author " .. buffer(4, 2):le_uint() .. " sender " .. buffer(6, 2):le_uint()
end

-- A sealed packet: what finds its key, and how much there is that nobody else can read.
local function sealed(buffer, tree, name, pinfo)
  local setup = name == "HELLO" or name == "HELLO_REPLY"
  if not name or extensions[name] or buffer:len() < 56 or (setup and buffer:len() ~= 160) then
    tree:add_proto_expert_info(malformed, "no such sealed packet")
    return
  end
  local secret = 16
  if setup then
    secret = 32
    tree:add_le(F.flow, buffer(4, 4))
    tree:add(F.nonce, buffer(8, 24))
    pinfo.cols.info = name .. " sealed"
  else
    tree:add_le(F.sealed_flow, buffer(4, 4))
    tree:add_le(F.phase, buffer(4, 4))
    tree:add_le(F.count, buffer(8, 8))
    pinfo.cols.info = name .. " sealed count " .. tostring(buffer(8, 8):le_uint64()) .. " flow " .. buffer(4, 3):le_uint()
  end
  tree:add(F.secret, buffer(secret, buffer:len() - 16 - secret))
  tree:add(F.mac, buffer(buffer:len() - 16, 16))
end

function causeway.dissector(buffer, pinfo, root)
  if buffer:len() < 40 then
    return 0
  end
  pinfo.cols.protocol = "Causeway"
  local tree = root:add(causeway, buffer())
  tree:add(F.version, buffer(0, 1))
  if buffer(0, 1):uint() ~= VERSION then
    tree:add_proto_expert_info(other_version, "version " .. buffer(0, 1):uint() .. ", this dissector knows " .. VERSION)
    return buffer:len()
  end
  local name = types[buffer(1, 1):uint()]
  tree:add(F.type, buffer(1, 1))
  local flags = tree:add_le(F.flags, buffer(2, 2))
  flags:add_le(F.waiting, buffer(2, 2))
  flags:add_le(F.ack_now, buffer(2, 2))
  flags:add_le(F.encrypted, buffer(2, 2))
  flags:add_le(F.summed, buffer(2, 2))
  flags:add_le(F.rdma, buffer(2, 2))
  flags:add_le(F.kept, buffer(2, 2))
  if buffer(2, 2):le_uint() % 16 >= 8 then
    sealed(buffer, tree, name, pinfo)
    return buffer:len()
  end
  rows(tree, buffer, 4, {
    {F.flow, 4}, {F.number, 4}, {F.timestamp, 4}, {F.acknowledged, 4}, {F.echo, 4}, {F.echo_delay, 2}, {F.payload_bytes, 2},
    {F.checksum, 4}, {F.tag, 8},
  })
  local bytes = buffer(26, 2):le_uint()
  if not name or bytes > buffer:len() - 40 then
    tree:add_proto_expert_info(malformed, "no such type, or longer than the datagram")
    return buffer:len()
  end
  local info = name .. " " .. buffer(8, 4):le_uint() .. " flow " .. buffer(4, 4):le_uint()
  if bytes > 0 then
    local payload = buffer(40, bytes):tvb()
    if name == "HELLO" or name == "HELLO_REPLY" then
      hello(payload, tree)
    elseif name == "DATA" then
      info = info .. " " .. frames(payload, tree)
    elseif name == "ACK" then
      ack(payload, tree)
    elseif name == "PROBE" then
      rows(tree, payload, 0, {{F.turn, 1}})
    elseif name == "TRIAL" then
      tree:add(F.data, payload(0, bytes))
    elseif name == "REJECT" and bytes == 16 then
      rows(tree, payload, 0, {{F.rejected, 4}, {F.rejected_put, 4}})
    elseif extensions[name] then
      info = info .. " " .. (extension(payload, tree, name) or "")
    else
      tree:add_proto_expert_info(malformed, "this type has no such payload")
    end
  elseif extensions[name] then
    tree:add_proto_expert_info(malformed, "this type has a payload")
  end
  pinfo.cols.info = info
  return buffer:len()
end

local function heuristic(buffer, pinfo, root)
  if buffer:len() < 40 or buffer(0, 1):uint() ~= VERSION or not types[buffer(1, 1):uint()] then
    return false
  end
  local flags = buffer(2, 2):le_uint()
  local is_sealed = flags < 128 and flags % 16 >= 8 and buffer:len() >= 56
  if not is_sealed and buffer(26, 2):le_uint() ~= buffer:len() - 40 then
    return false
  end
  causeway.dissector(buffer, pinfo, root)
  return true
end

DissectorTable.get("udp.port"):add("29300-29427", causeway)
causeway:register_heuristic("udp", heuristic)
