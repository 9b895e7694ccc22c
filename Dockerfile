# Two images from one build: `billing`, the service, and `sandbox`, the provider and the order generator that
# docker-compose.yml puts beside it. The Kafka client is a C library linked against glibc, hence no Alpine.

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/ ./cmd/billing ./cmd/sandbox

# A shell, so that the health check can be one line without another tool in the image.
FROM debian:bookworm-slim AS sandbox
COPY --from=build /out/sandbox /sandbox
USER 65532:65532
EXPOSE 8081
ENTRYPOINT ["/sandbox"]

# glibc, certificates, time zones, and nothing else: no shell, no package manager. The last stage is what a bare
# `docker build` makes.
FROM gcr.io/distroless/base-debian12:nonroot AS billing
COPY --from=build /out/billing /billing
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/billing", "health"]
ENTRYPOINT ["/billing"]
CMD ["serve"]
