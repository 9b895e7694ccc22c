// Package run puts a whole world around the real billing binary, disturbs it on
// request, and judges it from outside.
//
//	orders ─▶ broker ─▶ billing serve × N ─▶ provider
//	                          │
//	                      PostgreSQL
//
// Nothing of the service is imported: the judge looks at its tables by SQL, at
// the topic and the group by a second Kafka client, at the provider's own
// ledger, and at the admin API. What all of these say goes into [Facts], and
// [Judge] turns them into a [Report] whose every line is a figure with its check.
//
//	start parts ─▶ produce ─▶ (kill, snapshot the unfinished intents, restart)* ─▶ await the end ─▶ stop billing ─▶ collect ─▶ judge ─▶ stop parts
//	                     └──▶ (leave, join, or both; wait until the group has settled)* ──┘
//
// Instances that join and leave are to meet load: the orders are held back, each turn has a share of them, of which
// some wait when it begins and others come while partitions change hands. What it met is asked of the instances themselves.
package run
