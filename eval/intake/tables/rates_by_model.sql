-- title: Rates by model
-- section: edits
-- form: rates
-- rows: Outcome
-- note: Baseline arm. Of two judges the mean of their indicators. Intervals are for people and prompts like these: outputs of one source or prompt are not independent; near 0 and 100% they are Wilson's with as many outputs as are independent. Where outputs are missing a rate is adjusted for it, and says so; where most are, it is the share of what is there.
SELECT measure_display AS "row", model AS "column", sum(value) AS k, count(value) AS n,
       interval_low(rate_interval(value, source_row, prompt_row)) AS low, interval_high(rate_interval(value, source_row, prompt_row)) AS high,
       interval_rate(rate_interval(value, source_row, prompt_row)) AS adjusted
FROM measured
WHERE who = 'judges' AND arm = 'edited'
GROUP BY measure_position, model_position
ORDER BY measure_position, model_position
