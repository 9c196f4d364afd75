# docker build -t ironfence:0.2.0 .
FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY src src
COPY hack/build hack/build
RUN node hack/build/main.ts /out/ironfence.js
# The scripts and packages of development are of no use in the image.
RUN npm pkg delete scripts bin dependencies devDependencies optionalDependencies allowScripts

FROM node:24-bookworm-slim
# The bundle is an ES module; package.json says so, and has the version. The third file lists the packages in the bundle.
COPY --from=build /out/ironfence.js /out/ironfence.js.cdx.json /src/package.json /app/
# A program that its user may run and not read leaves no core dump, and no other process of that user may read its memory, where
# the passwords of BMCs are.
RUN chmod 0711 /usr/local/bin/node
# Nothing is written to the file system: run it with a read-only root.
USER 65532:65532
ENV NODE_ENV=production
# glibc keeps freed memory for each thread, and for later blocks of the size of a list's page: one pool for all threads and a
# fixed limit return 17 MiB of it.
ENV MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=131072
# The agent makes much short-lived garbage and is never in a hurry: a small young generation saves 100 MiB. Node fits the rest of the heap to the container's memory limit. SIGUSR1 would open the debugger, and with it the memory that holds passwords.
# With --permission nothing is written and no program is started, whatever a dependency tries.
ENTRYPOINT ["node", "--max-semi-space-size=1", "--disable-sigusr1", "--permission", "--allow-fs-read=*", "/app/ironfence.js"]
CMD ["run"]
