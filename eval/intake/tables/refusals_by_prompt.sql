-- title: Refused by prompt
-- section: refusals
-- form: rates
-- rows: Prompt
-- note: Baseline arm; requests that were answered. A prompt that is refused for everybody tells nothing of groups. Intervals are for people like these and this prompt.
SELECT category AS heading, prompt_id AS "row", model AS "column", sum(value) AS k, count(value) AS n,
       interval_low(rate_interval(value, coalesce(source_id, item_id), prompt_id)) AS low, interval_high(rate_interval(value, coalesce(source_id, item_id), prompt_id)) AS high
FROM measured
WHERE who = 'asked' AND arm = 'edited'
GROUP BY category, prompt_id, model_key
ORDER BY min(prompt_position), model_position
