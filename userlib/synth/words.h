/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Text files of one thing a line, words separated by blanks, '#' before comments:
 * what the readers of topologies, conditions and solved instances share. Whoever
 * refuses says the line and the reason.
 */
#ifndef MUSTER_SYNTH_WORDS_H
#define MUSTER_SYNTH_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { MUSTER_LINE_MAX = 16384, MUSTER_WORDS_MAX = 4096 };

struct muster_words {
	FILE *in;
	unsigned long line;
	unsigned int nr;
	char *word[MUSTER_WORDS_MAX];
	char text[MUSTER_LINE_MAX + 1];
	char *why;
	size_t why_len;
};

/** muster_words_refuse() - "line N: reason". Return: -EINVAL. */
__attribute__((format(printf, 2, 3)))
int muster_words_refuse(struct muster_words *words, const char *format, ...);

/** muster_words_next() - the next line that has words; nr is 0 at the end. 0; -EINVAL; -EIO. */
int muster_words_next(struct muster_words *words);

/** muster_words_head() - the next line must be keyword and one word. */
int muster_words_head(struct muster_words *words, const char *keyword, const char **word);

/** muster_words_number() - a decimal number from min to max; what names it in the refusal. */
int muster_words_number(struct muster_words *words, const char *what, const char *word,
			uint32_t min, uint32_t max, uint32_t *value);

/** muster_words_name() - a name that can stand in a file: at most room - 1 bytes. */
int muster_words_name(struct muster_words *words, const char *word, char *name, size_t room);

#endif /* MUSTER_SYNTH_WORDS_H */
