/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/program/value.h"

#include <errno.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int digits_parse(const char *text, size_t len, uint64_t *out)
{
	uint64_t value = 0;

	if (!len)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		const uint64_t digit = (uint64_t)(text[i] - '0');

		if (!is_digit(text[i]) || value > (UINT64_MAX - digit) / 10)
			return -EINVAL;
		value = value * 10 + digit;
	}
	*out = value;
	return 0;
}

int number_parse(const char *text, uint64_t *out)
{
	return digits_parse(text, strlen(text), out);
}

int signed_parse(const char *text, int64_t *out)
{
	const bool negative = *text == '-';
	uint64_t value;

	if (number_parse(text + negative, &value) || value > INT64_MAX)
		return -EINVAL;
	*out = negative ? -(int64_t)value : (int64_t)value;
	return 0;
}

static const struct {
	const char *name;
	uint64_t ns;
} duration_units[] = {
	{"ns", 1},
	{"us", 1000},
	{"ms", 1000000},
	{"s", 1000000000ull},
	{"m", 60000000000ull},
	{"h", 3600000000000ull},
};

/* So many digits times the largest unit fit 128 bits. */
enum { DIGITS_MAX = 24 };

int duration_parse(const char *text, uint64_t *ns)
{
	unsigned __int128 number = 0, scale = 1, product;
	unsigned n_digits = 0;
	bool fraction = false;

	for (; is_digit(*text) || (*text == '.' && !fraction && is_digit(text[1])); text++) {
		if (*text == '.') {
			fraction = true;
			continue;
		}
		if (++n_digits > DIGITS_MAX)
			return -EINVAL;
		number = number * 10 + (unsigned)(*text - '0');
		if (fraction)
			scale *= 10;
	}
	for (size_t i = 0; n_digits && i < sizeof(duration_units) / sizeof(duration_units[0]);
	     i++) {
		if (strcmp(text, duration_units[i].name))
			continue;
		product = number * duration_units[i].ns;
		if (product < scale)
			return -EINVAL;
		product = (product + scale / 2) / scale;
		if (product > INT64_MAX)
			return -EINVAL;
		*ns = (uint64_t)product;
		return 0;
	}
	return -EINVAL;
}

int size_parse(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	const size_t len = strspn(text, "0123456789");
	const char *rest = text + len, *unit;
	unsigned shift = 0;
	uint64_t value;

	if (digits_parse(text, len, &value))
		return -EINVAL;
	if (*rest) {
		unit = strchr(units, *rest);
		if (!unit || (rest[1] && strcmp(rest + 1, "iB")))
			return -EINVAL;
		shift = 10 * (unsigned)(unit - units + 1);
	}
	if (value > UINT64_MAX >> shift)
		return -EINVAL;
	*bytes = value << shift;
	return 0;
}

int percent_parse(const char *text, uint64_t *percent)
{
	const size_t len = strspn(text, "0123456789");
	uint64_t value;

	if (strcmp(text + len, "%") || digits_parse(text, len, &value) || value > 100)
		return -EINVAL;
	*percent = value;
	return 0;
}

int flag_parse(const char *text, bool *out)
{
	if (strcmp(text, "yes") && strcmp(text, "no"))
		return -EINVAL;
	*out = !strcmp(text, "yes");
	return 0;
}
