// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lines and their words. What is read comes from a user: a line is bounded, and
 * taken apart before anything of it is used.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "words.h"

#define NAME_BYTES	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

int muster_words_refuse(struct muster_words *words, const char *format, ...)
{
	int n = snprintf(words->why, words->why_len, "line %lu: ", words->line);
	va_list args;

	va_start(args, format);
	if (n >= 0 && (size_t)n < words->why_len)
		vsnprintf(words->why + n, words->why_len - n, format, args);
	va_end(args);
	return -EINVAL;
}

/* The next line without its end and comment: 1; 0 at the end of the input; or -errno. */
static int read_line(struct muster_words *words)
{
	size_t len = 0;
	int c;

	words->line++;
	while ((c = getc(words->in)) != EOF && c != '\n') {
		if (!c)
			return muster_words_refuse(words, "byte 0: this is not text");
		if (len == MUSTER_LINE_MAX)
			return muster_words_refuse(words, "longer than %d bytes", MUSTER_LINE_MAX);
		words->text[len++] = c;
	}
	words->text[len] = '\0';
	if (ferror(words->in)) {
		muster_words_refuse(words, "cannot be read: %s", strerror(errno));
		return -EIO;
	}
	words->text[strcspn(words->text, "#")] = '\0';
	return c != EOF || len;
}

int muster_words_next(struct muster_words *words)
{
	int more;

	do {
		char *rest = NULL, *word;

		words->nr = 0;
		more = read_line(words);
		if (more <= 0)
			return more;
		for (word = strtok_r(words->text, " \t\r", &rest); word;
		     word = strtok_r(NULL, " \t\r", &rest)) {
			if (words->nr == MUSTER_WORDS_MAX)
				return muster_words_refuse(words, "too many words");
			words->word[words->nr++] = word;
		}
	} while (!words->nr);
	return 0;
}

int muster_words_head(struct muster_words *words, const char *keyword, const char **word)
{
	int err = muster_words_next(words);

	if (err)
		return err;
	if (!words->nr)
		return muster_words_refuse(words, "the text ends where \"%s\" should follow",
					   keyword);
	if (strcmp(words->word[0], keyword) || words->nr != 2)
		return muster_words_refuse(words, "\"%s\" and one word expected, not \"%.40s\"%s",
					   keyword, words->word[0], words->nr == 2 ? "" :
					   words->nr < 2 ? " alone" : " and more");
	*word = words->word[1];
	return 0;
}

int muster_words_number(struct muster_words *words, const char *what, const char *word,
			uint32_t min, uint32_t max, uint32_t *value)
{
	uint64_t n = 0;

	if (!*word || word[strspn(word, "0123456789")])
		return muster_words_refuse(words, "%s \"%.40s\" is not a number", what, word);
	for (const char *c = word; *c; c++)
		n = n > UINT32_MAX ? n : n * 10 + (*c - '0');
	if (n < min || n > max)
		return muster_words_refuse(words, "%s %.40s, but it can be %" PRIu32 " to %" PRIu32,
					   what, word, min, max);
	*value = n;
	return 0;
}

int muster_words_name(struct muster_words *words, const char *word, char *name, size_t room)
{
	if (strlen(word) >= room)
		return muster_words_refuse(words, "the name is longer than %zu bytes", room - 1);
	if (word[strspn(word, NAME_BYTES)])
		return muster_words_refuse(words, "a name has only letters, digits, '.', '_' and "
					   "'-'");
	strcpy(name, word);
	return 0;
}
