/* What each test of cmocka's includes. */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* cmocka gives each test its state, which few have. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#endif
