/** Imports certificates that were issued elsewhere, and previews imports. */
import { Secret } from '../../../base/secret.ts';
import { formatTimestamp } from '../../../base/timestamp.ts';
import type { BundleSource } from '../../../crypto/bundles/certificate-bundle.ts';
import type { CertificateFacts } from '../../../crypto/x509/certificate-facts.ts';
import {
  importCertificate,
  previewImport,
  suggestedName,
} from '../../../domain/certificates/certificate-import.ts';
import { currentCertificate } from '../../../domain/certificates/certificate-views.ts';
import { certificateSummary } from '../../../domain/versions/certificate-lookup.ts';
import { requireCertificateInReach, requireLabelOfReach } from '../../auth/certificate-reach.ts';
import {
  type ImportFiles,
  importBody,
  importedSchema,
  importPreviewBody,
  importPreviewSchema,
} from '../../openapi/certificate-admin-schemas.ts';
import { noQuery } from '../../openapi/schemas.ts';
import { json } from '../../request/reply.ts';
import { type Route, route } from '../../request/route.ts';

const access = { kind: 'administrator' } as const;

/** Several files of up to 1 MiB, in base64. */
const bodyLimit = 4 * 1_048_576;

export const certificateImportRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/api/v1/imports',
    id: 'importCertificate',
    summary:
      'Import a certificate with its key; adds a version if the name is that of an imported certificate with other content',
    access,
    query: noQuery,
    body: importBody,
    bodyLimit,
    replies: { 201: { description: 'stored, now or before', schema: importedSchema } },
    problems: ['certificate_exists', 'not_renewable', 'domains_lost'],
    handle: async (call) => {
      const { context, actor, body, baseUrl } = call;
      const { vault } = context;
      const { name, force, allow_lost_domains: allowLostDomains, labels } = body;
      if ((await certificateSummary(vault, name)) === undefined)
        await requireLabelOfReach('POST', call, labels);
      else await requireCertificateInReach('POST', call, name);
      const wanted = { name, force, allowLostDomains, labels, ...understood(body) };
      const imported = await importCertificate(vault, actor, wanted);
      return json(201, { certificate: await currentCertificate(vault, name, baseUrl), ...imported });
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/imports/preview',
    id: 'previewImport',
    summary: 'Preview an import without storing anything',
    access,
    query: noQuery,
    body: importPreviewBody,
    bodyLimit,
    replies: { 200: { description: 'what the import would store', schema: importPreviewSchema } },
    problems: [],
    handle: async ({ context: { vault }, body }) => {
      const { leaf, chain, warnings } = await previewImport(vault, understood(body));
      return json(200, {
        certificate: factsView(leaf),
        chain: chain.map(factsView),
        warnings,
        suggested_name: (await suggestedName(vault, leaf.domains)) ?? null,
      });
    },
  }),
];

function understood({ files, password, allow_ca: allowCa }: ImportFiles) {
  const sources: BundleSource[] = files.map((file) => ({
    name: file.name === '' ? 'a file' : file.name,
    bytes: 'text' in file ? Buffer.from(file.text) : Buffer.from(file.content_base64, 'base64'),
  }));
  return { sources, allowCa, password: password === undefined ? undefined : new Secret(password) };
}

function factsView({ subject, issuer, serial, domains, keyType, ...facts }: CertificateFacts) {
  return {
    subject,
    issuer,
    serial,
    domains,
    key_type: keyType,
    fingerprint_sha256: facts.fingerprintSha256,
    not_before: formatTimestamp(facts.notBefore),
    not_after: formatTimestamp(facts.notAfter),
  };
}
