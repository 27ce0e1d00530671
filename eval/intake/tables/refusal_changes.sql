-- title: Pairs of requests with and without keeping the person
-- section: refusals
-- form: list
-- note: As above, by counts: how often only one of the two was refused. McNemar's exact test takes the pairs as independent, which those of one source are not: read the interval above.
SELECT model AS "Model", count(*) AS "Pairs", sum(with_it AND without) AS "Both refused", sum(with_it AND NOT without) AS "Only with",
       sum(without AND NOT with_it) AS "Only without", sum(NOT with_it AND NOT without) AS "Neither",
       mcnemar_p(sum(with_it AND NOT without), sum(without AND NOT with_it)) AS "p"
FROM (SELECT e.model, e.model_key, e.model_position, p.value AS with_it, e.value AS without
      FROM measured p JOIN measured e ON e.arm = 'edited' AND e.who = 'asked' AND e.model_key = p.model_key
           AND e.source_id = p.source_id AND e.prompt_id = p.prompt_id AND e.seed = p.seed
      WHERE p.arm = 'preserved' AND p.who = 'asked')
GROUP BY model_key
ORDER BY model_position
