/**
 * The bill of materials of an executable, in CycloneDX: for whoever has to know whether a weakness that became known is
 * in it.
 */
import type { Manifest, Part } from './build-inventory.ts';

/**
 * The bill of materials in CycloneDX 1.6, of the executable with this SHA-256. It has no time, and its serial number
 * comes from that hash: the same executable has the same bill.
 */
export function billOfMaterials(manifest: Manifest, target: string, parts: readonly Part[], sha256: string) {
  const own = `pkg:generic/${manifest.name}@${manifest.version}`;
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidFrom(sha256)}`,
    version: 1,
    metadata: {
      lifecycles: [{ phase: 'build' }],
      component: {
        type: 'application',
        'bom-ref': own,
        name: manifest.name,
        version: manifest.version,
        description: manifest.description,
        licenses: [{ license: { id: manifest.license } }],
        purl: own,
        hashes: [{ alg: 'SHA-256', content: sha256 }],
        properties: [{ name: 'certificate-vault:target', value: target }],
      },
    },
    components: parts.map(component),
    dependencies: [
      { ref: own, dependsOn: parts.map(({ purl }) => purl) },
      ...parts.map(({ purl, needs, inside }) => ({
        ref: purl,
        dependsOn: [...needs, ...Object.entries(inside ?? {}).map(genericPurl)],
      })),
    ],
  };
}

function component({ name, version, type, purl, cpe, license, integrity, inside }: Part) {
  const [, group, bare = name] = /^(@[^/]+)\/([^ ]+)/.exec(name) ?? [];
  return {
    type,
    'bom-ref': purl,
    ...(group !== undefined && { group }),
    name: bare,
    ...(version !== undefined && { version }),
    licenses: [{ license: { id: license } }],
    ...(cpe !== undefined && { cpe }),
    purl,
    ...(integrity !== undefined && { hashes: [{ alg: 'SHA-512', content: hexOf(integrity) }] }),
    ...(inside !== undefined && {
      components: Object.entries(inside).map((entry) => ({
        type: 'library',
        'bom-ref': genericPurl(entry),
        name: entry[0],
        version: entry[1],
        purl: genericPurl(entry),
      })),
    }),
  };
}

function genericPurl([name, version]: readonly [string, string]): string {
  return `pkg:generic/${name}@${encodeURIComponent(version)}`;
}

/** The hash of an `integrity` (Subresource Integrity) as CycloneDX writes it. */
function hexOf(integrity: string): string {
  return Buffer.from(integrity.replace(/^sha512-/, ''), 'base64').toString('hex');
}

/** A UUID of version 8 (RFC 9562) from the beginning of a hash. */
function uuidFrom(hex: string): string {
  const digits = `${hex.slice(0, 12)}8${hex.slice(13, 16)}a${hex.slice(17, 32)}`;
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
