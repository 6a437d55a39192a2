# The server with nothing but a shell and git around it; add your toolchains in a stage of your own.
#
#   docker build -t ahma_mcp --build-arg COMMIT=$(git rev-parse HEAD) .
#   docker run -i --rm -v "$PWD:/project" ahma_mcp
#
# Docker forbids user namespaces to containers, so the sandbox uses the core tier, which needs kernel 6.12 on the host.
FROM rust:1-slim-trixie AS build
ARG COMMIT=
WORKDIR /source
COPY . .
RUN AHMA_COMMIT=$COMMIT cargo install --locked --path ahma_core --root /out

FROM debian:trixie-slim
LABEL io.modelcontextprotocol.server.name="io.github.OWNER/ahma_mcp"
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bash ca-certificates git ripgrep \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home ahma
COPY --from=build /out/bin/ahma_mcp /usr/local/bin/ahma_mcp
USER ahma
WORKDIR /project
ENTRYPOINT ["ahma_mcp"]
