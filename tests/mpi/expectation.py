"""What tests of usage share: an expectation that is not met is told, and the test goes on and fails in the end."""

failures = 0


def expect(condition, what):
    global failures
    if not condition:
        failures += 1
        print("expected:", what, flush=True)


def exit_code():
    return 1 if failures else 0
