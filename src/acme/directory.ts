/** The directory of a CA (RFC 8555 §7.1.1), with what RFC 9773 and draft-ietf-acme-profiles add to it. */
import { z } from 'zod';
import { shortened } from '../base/printable-text.ts';
import { type AcmeAnswer, absoluteUrl, jsonIn } from './acme-answer.ts';
import type { AcmeDirectory } from './acme-types.ts';

const maxTextLength = 500;
const maxPageLength = 2000;

/** A web page for people, with any URL scheme; invisible characters are percent-encoded (%1B). */
const page = absoluteUrl.transform((text) => {
  const written = /^[\x21-\x7e]*$/.test(text) ? text : (URL.parse(text)?.href ?? '');
  return shortened(written, maxPageLength);
});

const schema = z.object({
  newNonce: absoluteUrl,
  newAccount: absoluteUrl,
  newOrder: absoluteUrl,
  revokeCert: absoluteUrl.optional(),
  keyChange: absoluteUrl.optional(),
  renewalInfo: absoluteUrl.optional(),
  // Informative members must not prevent a renewal.
  meta: z
    .object({
      termsOfService: page.optional().catch(undefined),
      website: page.optional().catch(undefined),
      externalAccountRequired: z.boolean().catch(false),
      profiles: z.record(z.string(), z.unknown()).catch({}),
    })
    .catch({ termsOfService: undefined, website: undefined, externalAccountRequired: false, profiles: {} }),
});

/** The directory in a response. Throws AcmeError `protocol` if it is invalid. */
export function readDirectory(answer: AcmeAnswer): AcmeDirectory {
  const { meta, ...resources } = jsonIn(answer, 'a directory', schema);
  return {
    ...resources,
    revokeCert: resources.revokeCert,
    keyChange: resources.keyChange,
    renewalInfo: resources.renewalInfo,
    termsOfService: meta.termsOfService,
    website: meta.website,
    externalAccountRequired: meta.externalAccountRequired,
    profiles: Object.fromEntries(
      Object.entries(meta.profiles).map(([name, about]) => [name, shortened(String(about), maxTextLength)]),
    ),
  };
}
