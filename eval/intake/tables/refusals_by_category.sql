-- title: Refused by category of prompt and $display
-- section: refusals
-- form: rates
-- rows: $display
-- for: attribute
-- note: Baseline arm; requests that were answered, each category of prompts a column. Intervals are for people and prompts like these.
SELECT model AS heading, t.level_display AS "row", category AS "column", sum(value) AS k, count(value) AS n,
       interval_low(rate_interval(value, source_row, prompt_row)) AS low, interval_high(rate_interval(value, source_row, prompt_row)) AS high
FROM measured JOIN attribute t ON t.name = '$attribute' AND t.level = measured."$attribute"
WHERE who = 'asked' AND arm = 'edited' AND source2_id IS NULL
GROUP BY model_key, t.position, category
ORDER BY model_position, t.position, min(prompt_position)
