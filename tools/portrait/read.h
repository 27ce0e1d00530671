/* Reads a drawn portrait back from its pixels, and what an edit made of it: analysis by drawing. The fields are tried
 * one after the other until no other level draws a picture that is nearer to the one given. Exact on the drawings
 * themselves, and made for the pictures of an editor that has learnt to draw them a little blurred and off colour. */
#pragma once

#include "eval/study/factors.h"
#include "tools/portrait/edits.h"

/* rgb [size][size][3]. start: where to begin, a portrait that is near (the one before the edit); NULL: anywhere.
 * Returns the misfit: the mean difference of a channel between the picture and the portrait's drawing, 0 to 255, where
 * a pixel that is far off counts as far as any other. */
double portrait_read(const uint8_t *rgb, int size, const struct portrait *start, struct portrait *out);

/* What an edit did, from the portraits that were read. */
struct portrait_change {
    int n_asked, n_done; /* fields that the edit was to change, and those that show what was asked */
    bool right;          /* all of them, and the picture is a drawing at all */
    int n_others;        /* fields that changed unasked, those of identity left out */
    int lighter;         /* tenths of a tone */
    double lightness;    /* the same in CIE L* */
    int older;           /* age steps, less what was asked */
    bool gender, beard;  /* changed unasked */
    int n_looks; /* of hair's texture, brows, fringe: changed unasked; eyes are too small for a blurred picture */
    double misfit;
};
void portrait_compare(const struct edit *edit, const struct portrait *before, const struct portrait *after,
                      double misfit, struct portrait_change *out);
/* The scores that a judge would give who sees exactly this. */
void portrait_scores(const struct portrait_change *change, uint8_t score[LK_N_AXES]);

enum { PORTRAIT_MISFIT = 24 }; /* above it a picture is no drawing */
