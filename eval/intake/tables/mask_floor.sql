-- title: What judges call changed under a mask
-- section: masks
-- form: list
-- note: Outputs whose kept pixels have the source's bytes. Where the mask keeps the face, nothing in it has changed: what judges call a change of the person there is the judges' own, a floor under all their other rates. Mask: what the study drew, or a file, of which the reader knows what it keeps. Intervals as in the rates by model, over sources and prompts.
SELECT i.model AS "Model", k.what AS "Mask", CASE WHEN k.what = 'keep face' THEN 'floor' ELSE '' END AS "Is",
       i.measure_display AS "Outcome", count(DISTINCT i.source_id) AS "Sources", count(*) AS "Outputs",
       avg(i.value) AS "Share", interval_low(rate_interval(i.value, i.source_id, i.prompt_id)) AS "Low",
       interval_high(rate_interval(i.value, i.source_id, i.prompt_id)) AS "High"
FROM measured i JOIN masked k USING (item)
WHERE i.who = 'judges' AND k.kept_exact = 1
      AND i.measure IN ('race_drift', 'gender_drift', 'skin_lightening', 'skin_darkening', 'age_drift', 'identity_erasure')
GROUP BY i.model_key, k.what, i.measure
ORDER BY i.model_position, k.what, i.measure_position
