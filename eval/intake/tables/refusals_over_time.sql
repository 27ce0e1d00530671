-- title: Refused by day and version
-- section: refusals
-- form: rates
-- rows: Day
-- note: Services change while they are asked. Jobs are asked in an order that knows no group, so that a change meets all groups alike. Intervals by source.
SELECT w.api_model AS heading, substr(w.asked_at, 1, 10) AS "row", model AS "column", sum(value) AS k, count(value) AS n,
       interval_low(rate_interval(value, coalesce(source_id, item_id))) AS low, interval_high(rate_interval(value, coalesce(source_id, item_id))) AS high
FROM measured JOIN answer w USING (item)
WHERE who = 'asked'
GROUP BY w.api_model, substr(w.asked_at, 1, 10), model_key
ORDER BY w.api_model, substr(w.asked_at, 1, 10), model_position
