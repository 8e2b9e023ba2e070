/* Datatypes against a reference that follows the definitions of MPI 5.0, 5.1, word by word: a type is a list of
 * predefined types and displacements. CW_TEST_SEEDS (300) sets of nested types. */
#include "dataplane/base/random.h"
#include "mpi/datatype/datatype.h"
#include "mpi_functions.h"
#include "mpi_testing.h"
#include "tests/test.h"

enum {
    ITEMS_MAX = 400,
    TYPES_MAX = 12,
    COUNTS_MAX = 5,
    ELEMENTS = 3,
    REACH = 1 << 20, /* displacements stay below: types that reach farther are not kept */
};

struct item {
    int64_t displacement;
    int bytes;
    int alignment;
};

struct map {
    int count;
    struct item items[ITEMS_MAX];
    bool resized; /* has markers of bounds */
    int64_t lb;
    int64_t ub;
};

struct sample {
    MPI_Datatype handle;
    struct map map;
};

/* Bounds by definition. */
static void bounds(const struct map *map, int64_t *lb, int64_t *extent, int64_t *true_lb, int64_t *true_extent)
{
    int64_t low = 0, high = 0, alignment = 1;
    for (int i = 0; i < map->count; i++) {
        const struct item *item = &map->items[i];
        low = i == 0 || item->displacement < low ? item->displacement : low;
        high = i == 0 || item->displacement + item->bytes > high ? item->displacement + item->bytes : high;
        alignment = item->alignment > alignment ? item->alignment : alignment;
    }
    *true_lb = low;
    *true_extent = high - low;
    *lb = map->resized ? map->lb : low;
    *extent = map->resized ? map->ub - map->lb : (high - low + alignment - 1) / alignment * alignment;
}

static int64_t extent_of(const struct map *map)
{
    int64_t lb, extent, true_lb, true_extent;
    bounds(map, &lb, &extent, &true_lb, &true_extent);
    return extent;
}

/* Adds one copy of a map at a displacement. False: too many items. */
static bool map_add(struct map *to, const struct map *from, int64_t displacement)
{
    if (to->count + from->count > ITEMS_MAX) {
        return false;
    }
    for (int i = 0; i < from->count; i++) {
        to->items[to->count] = from->items[i];
        to->items[to->count++].displacement += displacement;
    }
    if (from->resized) {
        int64_t lb = from->lb + displacement;
        int64_t ub = from->ub + displacement;
        to->lb = !to->resized || lb < to->lb ? lb : to->lb;
        to->ub = !to->resized || ub > to->ub ? ub : to->ub;
        to->resized = true;
    }
    return true;
}

static bool map_block(struct map *to, const struct map *from, int64_t length, int64_t displacement)
{
    bool fits = true;
    for (int64_t i = 0; i < length; i++) {
        fits = fits && map_add(to, from, displacement + i * extent_of(from));
    }
    return fits;
}

static struct cw_random dice;

static int64_t between(int64_t low, int64_t high)
{
    return low + (int64_t)cw_random_below(&dice, (uint64_t)(high - low + 1));
}

/* The arguments of a constructor, both as int and as MPI_Count. */
struct arguments {
    bool large;
    int count;
    int lengths[COUNTS_MAX];
    int displacements[COUNTS_MAX];
    MPI_Count wide_lengths[COUNTS_MAX];
    MPI_Count wide_displacements[COUNTS_MAX];
};

static struct arguments arguments_draw(bool in_bytes)
{
    struct arguments drawn = {.large = between(0, 1) == 1, .count = (int)between(0, COUNTS_MAX)};
    bool regular = between(0, 2) == 0;
    int step = (int)between(-9, 9);
    for (int i = 0; i < drawn.count; i++) {
        drawn.lengths[i] = regular && i > 0 ? drawn.lengths[0] : (int)between(0, 3);
        drawn.displacements[i] = regular ? i * step : (int)between(-8, 12);
        drawn.displacements[i] *= in_bytes && !regular ? (int)between(1, 5) : 1;
        drawn.wide_lengths[i] = drawn.lengths[i];
        drawn.wide_displacements[i] = drawn.displacements[i];
    }
    return drawn;
}

static struct mpi_counts lengths_of(const struct arguments *arguments)
{
    return arguments->large ? mpi_counts_wide(arguments->wide_lengths) : mpi_counts_int(arguments->lengths);
}

static struct mpi_counts displacements_of(const struct arguments *arguments, bool in_bytes)
{
    return arguments->large || in_bytes ? mpi_counts_wide(arguments->wide_displacements)
                                        : mpi_counts_int(arguments->displacements);
}

static bool draw_vector(struct sample *made, const struct sample *old, bool in_bytes)
{
    int count = (int)between(0, 4), length = (int)between(0, 3), stride = (int)between(-6, 9);
    int64_t bytes = in_bytes ? stride : stride * extent_of(&old->map);
    bool fits = true;
    for (int i = 0; i < count; i++) {
        fits = fits && map_block(&made->map, &old->map, length, i * bytes);
    }
    mpi_testing_call(between(0, 1) ? "MPI_Type_vector_c" : "MPI_Type_vector");
    assert_int_equal(in_bytes ? mpi_type_create_hvector(count, length, stride, old->handle, &made->handle)
                              : mpi_type_vector(count, length, stride, old->handle, &made->handle),
                     MPI_SUCCESS);
    return fits;
}

static bool draw_indexed(struct sample *made, const struct sample *old, bool in_bytes, bool is_block)
{
    struct arguments drawn = arguments_draw(in_bytes);
    int64_t unit = in_bytes ? 1 : extent_of(&old->map);
    bool fits = true;
    for (int i = 0; i < drawn.count; i++) {
        fits = fits && map_block(&made->map, &old->map, drawn.lengths[is_block ? 0 : i], drawn.displacements[i] * unit);
    }
    struct mpi_counts displacements = displacements_of(&drawn, in_bytes);
    mpi_testing_call(drawn.large ? "MPI_Type_indexed_c" : "MPI_Type_indexed");
    int code;
    if (is_block) {
        code = (in_bytes ? mpi_type_create_hindexed_block : mpi_type_create_indexed_block)(
            drawn.count, drawn.lengths[0], displacements, old->handle, &made->handle);
    } else {
        code = (in_bytes ? mpi_type_create_hindexed : mpi_type_indexed)(drawn.count, lengths_of(&drawn), displacements,
                                                                        old->handle, &made->handle);
    }
    assert_int_equal(code, MPI_SUCCESS);
    return fits;
}

static bool draw_struct(struct sample *made, const struct sample *samples, int sample_count)
{
    struct arguments drawn = arguments_draw(true);
    MPI_Datatype types[COUNTS_MAX];
    bool fits = true;
    for (int i = 0; i < drawn.count; i++) {
        const struct sample *old = &samples[between(0, sample_count - 1)];
        types[i] = old->handle;
        fits = fits && map_block(&made->map, &old->map, drawn.lengths[i], drawn.displacements[i]);
    }
    mpi_testing_call(drawn.large ? "MPI_Type_create_struct_c" : "MPI_Type_create_struct");
    assert_int_equal(
        mpi_type_create_struct(drawn.count, lengths_of(&drawn), displacements_of(&drawn, true), types, &made->handle),
        MPI_SUCCESS);
    return fits;
}

/* The standard's Subarray(), in the order of memory. */
static bool draw_subarray(struct sample *made, const struct sample *old)
{
    int dimensions = (int)between(1, 3);
    int order = between(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    int sizes[3], parts[3], starts[3], at[3] = {0};
    for (int i = 0; i < dimensions; i++) {
        sizes[i] = (int)between(1, 4);
        parts[i] = (int)between(1, sizes[i]);
        starts[i] = (int)between(0, sizes[i] - parts[i]);
    }
    int64_t extent = extent_of(&old->map), whole = extent;
    bool fits = true, more = true;
    struct map plain = old->map;
    plain.resized = false; /* its markers are replaced below */
    while (more) {
        int64_t index = 0;
        for (int i = 0; i < dimensions; i++) {
            int dimension = order == MPI_ORDER_C ? i : dimensions - 1 - i; /* the slowest first */
            index = index * sizes[dimension] + starts[dimension] + at[dimension];
        }
        fits = fits && map_add(&made->map, &plain, index * extent);
        more = false;
        for (int i = dimensions - 1; i >= 0 && !more; i--) {
            int dimension = order == MPI_ORDER_C ? i : dimensions - 1 - i; /* the fastest first */
            at[dimension] = (at[dimension] + 1) % parts[dimension];
            more = at[dimension] != 0;
        }
    }
    for (int i = 0; i < dimensions; i++) {
        whole *= sizes[i];
    }
    made->map.resized = true;
    made->map.lb = 0;
    made->map.ub = whole;
    mpi_testing_call("MPI_Type_create_subarray");
    assert_int_equal(mpi_type_create_subarray(dimensions, mpi_counts_int(sizes), mpi_counts_int(parts),
                                              mpi_counts_int(starts), order, old->handle, &made->handle),
                     MPI_SUCCESS);
    return fits;
}

static bool draw_resized(struct sample *made, const struct sample *old)
{
    int64_t lb = between(-20, 20), extent = between(-10, 60);
    made->map = old->map;
    made->map.resized = true;
    made->map.lb = lb;
    made->map.ub = lb + extent;
    mpi_testing_call(between(0, 1) ? "MPI_Type_create_resized_c" : "MPI_Type_create_resized");
    assert_int_equal(mpi_type_create_resized(old->handle, lb, extent, &made->handle), MPI_SUCCESS);
    return true;
}

static bool draw_contiguous(struct sample *made, const struct sample *old)
{
    int64_t count = between(0, 4);
    mpi_testing_call(between(0, 1) ? "MPI_Type_contiguous_c" : "MPI_Type_contiguous");
    assert_int_equal(mpi_type_contiguous(count, old->handle, &made->handle), MPI_SUCCESS);
    return map_block(&made->map, &old->map, count, 0);
}

/* One more type out of those before it. False: it became too big for the reference. */
static bool draw(struct sample *made, const struct sample *samples, int sample_count)
{
    const struct sample *old = &samples[between(0, sample_count - 1)];
    made->map.count = 0;
    made->map.resized = false;
    switch (between(0, 10)) {
    case 0:
        return draw_contiguous(made, old);
    case 1:
        return draw_vector(made, old, false);
    case 2:
        return draw_vector(made, old, true);
    case 3:
        return draw_indexed(made, old, false, false);
    case 4:
        return draw_indexed(made, old, true, false);
    case 5:
        return draw_indexed(made, old, false, true);
    case 6:
        return draw_indexed(made, old, true, true);
    case 7:
    case 8:
        return draw_struct(made, samples, sample_count);
    case 9:
        return draw_subarray(made, old);
    default:
        return draw_resized(made, old);
    }
}

static int samples_draw(struct sample *samples)
{
    static const struct {
        MPI_Datatype handle;
        int bytes;
        int alignment;
    } basics[] = {{MPI_CHAR, 1, 1},   {MPI_SHORT, 2, 2},         {MPI_INT, 4, 4},
                  {MPI_DOUBLE, 8, 8}, {MPI_LONG_DOUBLE, 16, 16}, {MPI_C_FLOAT_COMPLEX, 8, 4}};
    int count = 0;
    for (; count < 6; count++) {
        samples[count].handle = basics[count].handle;
        samples[count].map.resized = false;
        samples[count].map.count = 1;
        samples[count].map.items[0] = (struct item){.bytes = basics[count].bytes, .alignment = basics[count].alignment};
    }
    for (int turn = 0; turn < 40 && count < TYPES_MAX; turn++) {
        int64_t lb, extent, true_lb, true_extent;
        bool fits = draw(&samples[count], samples, count);
        bounds(&samples[count].map, &lb, &extent, &true_lb, &true_extent);
        if (fits && llabs(lb) + llabs(extent) + llabs(true_lb) + true_extent < REACH) {
            count++;
        } else {
            assert_int_equal(mpi_type_free(&samples[count].handle), MPI_SUCCESS);
        }
    }
    return count;
}

static void check_queries(const struct sample *sample)
{
    int64_t lb, extent, true_lb, true_extent, size = 0;
    MPI_Count got_size, got_lb, got_extent, got_true_lb, got_true_extent;
    bounds(&sample->map, &lb, &extent, &true_lb, &true_extent);
    for (int i = 0; i < sample->map.count; i++) {
        size += sample->map.items[i].bytes;
    }
    assert_int_equal(mpi_type_size(sample->handle, &got_size), MPI_SUCCESS);
    assert_int_equal(mpi_type_get_extent(sample->handle, &got_lb, &got_extent), MPI_SUCCESS);
    assert_int_equal(mpi_type_get_true_extent(sample->handle, &got_true_lb, &got_true_extent), MPI_SUCCESS);
    assert_int_equal(got_size, size);
    assert_int_equal(got_lb, lb);
    assert_int_equal(got_extent, extent);
    assert_int_equal(got_true_lb, true_lb);
    assert_int_equal(got_true_extent, true_extent);
}

/* A buffer with room for ELEMENTS elements with any displacements: `origin` is their zero. */
struct area {
    uint8_t *bytes;
    size_t length;
    uint8_t *origin;
};

static struct area area_make(const struct map *map)
{
    int64_t lb, extent, true_lb, true_extent;
    bounds(map, &lb, &extent, &true_lb, &true_extent);
    int64_t last = (ELEMENTS - 1) * extent;
    int64_t low = true_lb + (last < 0 ? last : 0);
    int64_t high = true_lb + true_extent + (last > 0 ? last : 0);
    struct area area = {.length = (size_t)(high - low)};
    area.bytes = malloc(area.length + 1);
    area.origin = (uint8_t *)((uintptr_t)area.bytes - (uintptr_t)low);
    cw_random_fill(&dice, area.bytes, area.length);
    return area;
}

/* The meaning of packing and unpacking, byte by byte. Returns the number of bytes. */
static int64_t reference_copy(const struct map *map, uint8_t *origin, uint8_t *stream, bool unpacks)
{
    int64_t position = 0;
    for (int element = 0; element < ELEMENTS; element++) {
        for (int i = 0; i < map->count; i++) {
            for (int byte = 0; byte < map->items[i].bytes; byte++, position++) {
                uint8_t *at = (uint8_t *)((uintptr_t)origin +
                                          (uintptr_t)(element * extent_of(map) + map->items[i].displacement + byte));
                if (unpacks) {
                    *at = stream[position];
                } else {
                    stream[position] = *at;
                }
            }
        }
    }
    return position;
}

static void check_packing(const struct sample *sample, const struct mpi_type *type)
{
    struct area area = area_make(&sample->map);
    int64_t bytes = type->size * ELEMENTS;
    uint8_t *expected = malloc((size_t)bytes + 1), *got = malloc((size_t)bytes + 1);
    assert_int_equal(reference_copy(&sample->map, area.origin, expected, false), bytes);
    for (int turn = 0; turn < 8; turn++) {
        int64_t from = turn == 0 ? 0 : between(0, bytes), length = turn == 0 ? bytes : between(0, bytes - from);
        memset(got, 0, (size_t)bytes + 1);
        mpi_type_pack(type, ELEMENTS, area.origin, from, got, length);
        assert_memory_equal(got, expected + from, (size_t)length);
        assert_int_equal(got[length], 0);
    }
    free(expected);
    free(got);
    free(area.bytes);
}

static void check_unpacking(const struct sample *sample, const struct mpi_type *type)
{
    struct area area = area_make(&sample->map);
    int64_t bytes = type->size * ELEMENTS;
    uint8_t *stream = malloc((size_t)bytes + 1), *before = malloc(area.length + 1), *expected = malloc(area.length + 1);
    cw_random_fill(&dice, stream, (size_t)bytes);
    memcpy(before, area.bytes, area.length);
    reference_copy(&sample->map, area.origin, stream, true);
    memcpy(expected, area.bytes, area.length);
    for (int turn = 0; turn < 3; turn++) {
        memcpy(area.bytes, before, area.length);
        for (int64_t done = 0; done < bytes;) { /* in pieces, in order: later bytes win where blocks overlap */
            int64_t piece = turn == 0 ? bytes : between(1, bytes - done);
            uint8_t *copy = malloc((size_t)piece);
            memcpy(copy, stream + done, (size_t)piece);
            mpi_type_unpack(type, ELEMENTS, area.origin, done, copy, piece);
            free(copy);
            done += piece;
        }
        assert_memory_equal(area.bytes, expected, area.length);
    }
    free(stream);
    free(before);
    free(expected);
    free(area.bytes);
}

static void check_elements(const struct sample *sample, const struct mpi_type *type)
{
    int64_t bytes = 0, count = 0;
    const struct map *map = &sample->map;
    if (map->count == 0) {
        assert_int_equal(mpi_type_elements(type, 0), 0);
        assert_int_equal(mpi_type_elements(type, 1), MPI_UNDEFINED);
        return;
    }
    for (int i = 0; i < 2 * map->count; i++) {
        const struct item *item = &map->items[i % map->count];
        assert_int_equal(mpi_type_elements(type, bytes), count);
        assert_int_equal(mpi_type_elements_bytes(type, count), bytes);
        if (item->bytes > 1) {
            assert_int_equal(mpi_type_elements(type, bytes + between(1, item->bytes - 1)), MPI_UNDEFINED);
        }
        bytes += item->bytes;
        count++;
    }
}

/* Copies as many bytes as both hold; the source may have more. Destinations whose blocks overlap are left out: the
 * order is open there. */
static void check_copy(const struct sample *from, const struct sample *to)
{
    struct mpi_type *from_type = mpi_type_find(from->handle), *to_type = mpi_type_find(to->handle);
    struct area source = area_make(&from->map), target = area_make(&to->map);
    int64_t from_bytes = from_type->size * ELEMENTS, to_bytes = to_type->size * ELEMENTS;
    int64_t bytes = from_bytes < to_bytes ? from_bytes : to_bytes;
    uint8_t *stream = malloc((size_t)(from_bytes + to_bytes) + 1), *expected = malloc(target.length + 1);
    uint8_t *before = malloc(target.length + 1);
    memcpy(before, target.bytes, target.length);
    reference_copy(&to->map, target.origin, stream, false);
    reference_copy(&from->map, source.origin, stream + to_bytes, false);
    memmove(stream, stream + to_bytes, (size_t)bytes);
    mpi_type_unpack(to_type, ELEMENTS, target.origin, 0, stream, bytes);
    memcpy(expected, target.bytes, target.length);
    memcpy(target.bytes, before, target.length);
    int code = mpi_type_copy(from_type, ELEMENTS, source.origin, to_type, ELEMENTS, target.origin);
    assert_int_equal(code, from_bytes > to_bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    assert_memory_equal(target.bytes, expected, target.length);
    free(stream);
    free(expected);
    free(before);
    free(source.bytes);
    free(target.bytes);
}

/* What a type was made of, as one of the two ways to ask tells it: by int and MPI_Aint, or by MPI_Count. */
struct contents {
    bool large;
    int integers[3 * COUNTS_MAX];
    MPI_Aint addresses[COUNTS_MAX];
    MPI_Count counts[3 * COUNTS_MAX];
};

static MPI_Count number_of(const struct contents *contents, int index)
{
    return contents->large ? contents->counts[index] : contents->integers[index];
}

static struct mpi_counts numbers_of(const struct contents *contents, MPI_Count first)
{
    return contents->large ? mpi_counts_wide(contents->counts + first) : mpi_counts_int(contents->integers + first);
}

/* Displacements in bytes. */
static struct mpi_counts places_of(const struct contents *contents, MPI_Count first)
{
    return mpi_counts_wide(contents->large ? contents->counts + first : contents->addresses);
}

static int rebuild_from(int combiner, const struct contents *from, const MPI_Datatype types[], MPI_Datatype *made)
{
    MPI_Count count = number_of(from, 0), second = number_of(from, 1);
    switch (combiner) {
    case MPI_COMBINER_CONTIGUOUS:
        return mpi_type_contiguous(count, types[0], made);
    case MPI_COMBINER_VECTOR:
        return mpi_type_vector(count, second, number_of(from, 2), types[0], made);
    case MPI_COMBINER_HVECTOR:
        return mpi_type_create_hvector(count, second, from->large ? from->counts[2] : from->addresses[0], types[0],
                                       made);
    case MPI_COMBINER_INDEXED:
        return mpi_type_indexed(count, numbers_of(from, 1), numbers_of(from, 1 + count), types[0], made);
    case MPI_COMBINER_HINDEXED:
        return mpi_type_create_hindexed(count, numbers_of(from, 1), places_of(from, 1 + count), types[0], made);
    case MPI_COMBINER_INDEXED_BLOCK:
        return mpi_type_create_indexed_block(count, second, numbers_of(from, 2), types[0], made);
    case MPI_COMBINER_HINDEXED_BLOCK:
        return mpi_type_create_hindexed_block(count, second, places_of(from, 2), types[0], made);
    case MPI_COMBINER_STRUCT:
        return mpi_type_create_struct(count, numbers_of(from, 1), places_of(from, 1 + count), types, made);
    case MPI_COMBINER_SUBARRAY:
        return mpi_type_create_subarray(from->integers[0], numbers_of(from, 1), numbers_of(from, 1 + count),
                                        numbers_of(from, 1 + 2 * count), from->integers[1 + 3 * count], types[0], made);
    case MPI_COMBINER_RESIZED:
        return from->large ? mpi_type_create_resized(types[0], count, second, made)
                           : mpi_type_create_resized(types[0], from->addresses[0], from->addresses[1], made);
    default:
        return MPI_ERR_UNKNOWN;
    }
}

/* Makes a type again from MPI's description of it, and so on down to predefined types. */
static MPI_Datatype rebuild(MPI_Datatype datatype)
{
    MPI_Count integer_count, address_count, large_count, type_count;
    int combiner;
    assert_int_equal(
        mpi_type_get_envelope_c(datatype, &integer_count, &address_count, &large_count, &type_count, &combiner),
        MPI_SUCCESS);
    if (combiner == MPI_COMBINER_NAMED) {
        return datatype;
    }
    struct contents contents = {.large = large_count > 0};
    MPI_Datatype types[COUNTS_MAX], parts[COUNTS_MAX], made;
    assert_int_equal(mpi_type_get_contents_c(datatype, 3 * COUNTS_MAX, COUNTS_MAX, 3 * COUNTS_MAX, COUNTS_MAX,
                                             contents.integers, contents.addresses, contents.counts, types),
                     MPI_SUCCESS);
    for (MPI_Count i = 0; i < type_count; i++) {
        parts[i] = rebuild(types[i]);
    }
    mpi_testing_call(contents.large ? "MPI_Again_c" : "MPI_Again");
    assert_int_equal(rebuild_from(combiner, &contents, parts, &made), MPI_SUCCESS);
    for (MPI_Count i = 0; i < type_count; i++) {
        bool is_derived = !mpi_type_find(types[i])->predefined;
        if (is_derived) {
            assert_int_equal(mpi_type_free(&parts[i]), MPI_SUCCESS);
            assert_int_equal(mpi_type_free(&types[i]), MPI_SUCCESS);
        }
    }
    return made;
}

static void check_contents(const struct sample *sample)
{
    struct sample again = *sample;
    again.handle = rebuild(sample->handle);
    assert_ptr_not_equal(again.handle, sample->handle);
    check_queries(&again);
    check_packing(&again, mpi_type_find(again.handle));
    assert_int_equal(mpi_type_free(&again.handle), MPI_SUCCESS);
}

static void check_seed(uint64_t seed)
{
    static struct sample samples[TYPES_MAX];
    cw_random_seed(&dice, seed);
    int count = samples_draw(samples);
    for (int i = 0; i < count; i++) {
        struct mpi_type *type = mpi_type_find(samples[i].handle);
        assert_non_null(type);
        check_queries(&samples[i]);
        check_packing(&samples[i], type);
        check_unpacking(&samples[i], type);
        check_elements(&samples[i], type);
        check_copy(&samples[i], &samples[between(0, count - 1)]);
        if (!type->predefined) {
            check_contents(&samples[i]);
        }
    }
    /* Old types may go first: new ones hold them. */
    for (int i = 6; i < count; i++) {
        assert_int_equal(mpi_type_free(&samples[i].handle), MPI_SUCCESS);
        for (int j = i + 1; j < count; j++) {
            check_packing(&samples[j], mpi_type_find(samples[j].handle));
        }
    }
}

static void test_random(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", 300));
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        check_seed(seed);
    }
}

int main(void)
{
    mpi_testing_start();
    return TESTS_RUN(test_random);
}
