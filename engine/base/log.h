/* What the tools tell the user while they run. All of it goes to stderr; libraries tell nothing but details. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum lk_log_level { LK_LOG_INFO, LK_LOG_WARNING, LK_LOG_ERROR, LK_LOG_DETAIL };

/* quiet: errors only. verbose: details too, if not quiet. Finds out whether stderr is a terminal and whether NO_COLOR
 * (not empty) forbids colour. */
void lk_log_open(bool quiet, bool verbose);
/* One line. An unfinished progress line is ended first. */
void lk_log(enum lk_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Progress through n_steps steps: on a terminal one line that is rewritten, otherwise a line when 30 s have passed
 * since the last one. step counts finished steps; 0 starts the clock of the stage. now_s: seconds of a clock that never
 * goes back. */
void lk_log_progress(const char *stage, int step, int n_steps, double now_s);
/* The same with a line of the caller's. */
void lk_log_status(const char *line, double now_s);
/* Ends the progress line, if one is on the screen. */
void lk_log_progress_end(void);

/* "9:48", "1:02:03", for messages. */
void lk_log_duration(double seconds, char out[32]);
/* Text from outside (a file, a prompt, a name), made harmless for a terminal: line ends and tabs become \n, \r and \t,
 * other control characters \xNN, so that it cannot move the cursor. */
void lk_log_text(FILE *out, const char *text, bool keep_newlines);
double lk_log_now(void); /* monotonic, seconds */
