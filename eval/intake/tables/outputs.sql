-- title: Outputs by experiment and model
-- section: design
-- form: list
-- note: Asked for: by the study. Refused: by a hosted model, placeholders of filters included. Judged, rated: outputs with a valid score.
SELECT experiment AS "Experiment", model AS "Model", count(*) AS "Asked for", sum(status = 'made') AS "Made",
       sum(status IN ('refused', 'placeholder')) AS "Refused", sum(status = 'failed') AS "Failed", sum(status = 'missing') AS "Missing",
       sum(item IN (SELECT item FROM score WHERE kind = 'judge')) AS "Judged",
       sum(item IN (SELECT item FROM score WHERE kind = 'raters')) AS "Rated"
FROM item
GROUP BY experiment, model_key
ORDER BY experiment, model_position
