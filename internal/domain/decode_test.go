package domain_test

const goodID = "0198f3a1-5b6c-7d8e-9f01-23456789abcd"

const goodValue = `{"eventId":"` + goodID + `","eventType":"order.confirmed.v1",` +
	`"occurredAt":"2026-01-02T03:04:05.678Z","aggregateType":"Order","orderId":42,"customerId":7,` +
	`"totalAmount":10.50,"currency":"EUR"}`
