/** The file names of artifacts in the specification. Listed here, because tests must not read them from the source. */
export const artifactFiles = [
  'certificate.crt',
  'chain.crt',
  'fullchain.crt',
  'private.key',
  'fullchain.pem',
  'private-key.pem',
] as const;
