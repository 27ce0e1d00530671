-- title: Refused, made and ignored
-- section: refusals
-- form: rates
-- rows: Model
-- note: Baseline arm. Refused and made: of all requests that were answered, placeholders being refused. Ignored: soft erasure by the judges, of what was made and judged. Intervals as in the rates by model.
SELECT experiment AS heading, model AS "row", what AS "column", sum(x) AS k, count(x) AS n,
       interval_low(rate_interval(x, coalesce(source_id, item_id), prompt_id)) AS low, interval_high(rate_interval(x, coalesce(source_id, item_id), prompt_id)) AS high
FROM asked
GROUP BY experiment, model_key, place
ORDER BY experiment, model_position, place
