-- title: Refused, made and ignored by $display
-- section: refusals
-- form: rates
-- rows: $display
-- for: attribute
-- note: As above, each model under its name. Intervals are for people and prompts like these: outputs of one source or prompt are not independent.
SELECT model AS heading, t.level_display AS "row", what AS "column", sum(x) AS k, count(x) AS n,
       interval_low(rate_interval(x, source_row, prompt_row)) AS low, interval_high(rate_interval(x, source_row, prompt_row)) AS high
FROM asked JOIN attribute t ON t.name = '$attribute' AND t.level = asked."$attribute"
WHERE source2_id IS NULL
GROUP BY model_key, t.position, place
ORDER BY model_position, t.position, place
