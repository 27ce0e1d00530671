-- title: Models and what is done with them
-- section: design
-- form: list
-- note: One checkpoint under several keys is several treatments. An adapter is known by its digest.
SELECT display AS "Model", model_key AS "Key", family AS "Family", treatment AS "Treatment"
FROM model
ORDER BY position
