/** The supported challenge types (RFC 8555 §8, RFC 8737, draft-ietf-acme-dns-persist). */

export const challengeTypes = ['http-01', 'tls-alpn-01', 'dns-01', 'dns-persist-01'] as const;

export type ChallengeType = (typeof challengeTypes)[number];
