/* A page with every kind of table and figure, from invented numbers: for the tests of the report and to look at. */
#pragma once

#include "eval/document/page.h"

#define SAMPLE_FIGURES 5

/* The i-th of the sample's figures. */
enum lk_code sample_figure(int i, struct lk_figure *out);
/* Writes 12 small pictures, "portrait_0.png" ..., into the folder. */
enum lk_code sample_pictures(const char *folder);
/* The whole page; `folder` holds the pictures. Its figures' ids: f_rate, f_heat, f_forest, f_likert, f_shift. */
enum lk_code sample_page(const char *folder, enum lk_page_images images, struct lk_text *out);
