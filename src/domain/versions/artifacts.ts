/** The artifacts of a certificate: file names, required scope and content. */
import type { Scope } from '../../base/scope.ts';
import type { HandedOutRow } from '../../db/tables/certificates/certificate-versions.ts';

export type ArtifactContent = 'certificate' | 'chain' | 'fullchain' | 'private_key';

type Artifact = { readonly content: ArtifactContent; readonly scope: Scope };

/** By file name; the last two are aliases of `fullchain.crt` and `private.key`. */
export const artifacts = {
  'certificate.crt': { content: 'certificate', scope: 'certificates:read' },
  'chain.crt': { content: 'chain', scope: 'certificates:read' },
  'fullchain.crt': { content: 'fullchain', scope: 'certificates:read' },
  'private.key': { content: 'private_key', scope: 'private_keys:read' },
  'fullchain.pem': { content: 'fullchain', scope: 'certificates:read' },
  'private-key.pem': { content: 'private_key', scope: 'private_keys:read' },
} as const satisfies Record<string, Artifact>;

export type ArtifactName = keyof typeof artifacts;

export const artifactNames = Object.keys(artifacts) as ArtifactName[];

/** The names that metadata lists, one for each content. */
export const listedArtifacts = ['certificate.crt', 'chain.crt', 'fullchain.crt', 'private.key'] as const;

/** Spelled out because concatenating the column names costs time in lists of thousands. */
const etagColumns = {
  certificate: 'certificate_etag',
  chain: 'chain_etag',
  fullchain: 'fullchain_etag',
  private_key: 'private_key_etag',
} as const satisfies Record<ArtifactContent, string>;

/** The strong entity tag (RFC 9110 §8.8.3), computed when the version was stored. */
export function etagOf(
  version: Pick<HandedOutRow, (typeof etagColumns)[ArtifactContent]>,
  content: ArtifactContent,
): string {
  return version[etagColumns[content]];
}

/** The PEM of a public artifact, which is ASCII. */
export function publicBody(version: HandedOutRow, content: Exclude<ArtifactContent, 'private_key'>): string {
  switch (content) {
    case 'certificate':
      return version.certificate_pem;
    case 'chain':
      return version.chain_pem;
    case 'fullchain':
      return version.certificate_pem + version.chain_pem;
  }
}
