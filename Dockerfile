# An image of this checkout: docker build -t threadmill .
ARG NODE_IMAGE=node:24-slim

FROM ${NODE_IMAGE} AS build
# A mirror of the npm registry, if there is one.
ARG NPM_CONFIG_REGISTRY
WORKDIR /build
COPY . .
# npm pack runs the build. One step, without what only the build needs: saving node_modules as a layer takes longer than installing it.
RUN npm ci --ignore-scripts --no-audit --no-fund \
  && npm pack --pack-destination /tmp \
  && test -f dist/web/index.html \
  && mkdir -p /app /data \
  && cd /app && npm init --yes && npm install --omit=dev --no-audit --no-fund /tmp/threadmill-*.tgz \
  && chown 1000:1000 /data \
  && rm -rf /build/node_modules /build/dist "$(npm config get cache)"

FROM ${NODE_IMAGE}
COPY --from=build /app /app
COPY --from=build --chown=1000:1000 /data /data
ENV THREADMILL_HOST=0.0.0.0 THREADMILL_DATA=/data
USER 1000:1000
WORKDIR /project
VOLUME /data
EXPOSE 2024
CMD ["node", "/app/node_modules/threadmill/bin/threadmill.js", "serve"]
