/** The artifacts' file names as the specification has them, written out: the tests must not take them from the source. */
export const artifactFiles = [
  'certificate.crt',
  'chain.crt',
  'fullchain.crt',
  'private.key',
  'fullchain.pem',
  'private-key.pem',
] as const;
