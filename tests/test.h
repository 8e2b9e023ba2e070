/* What each test of cmocka's includes. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* cmocka gives each test its state, which few have. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
