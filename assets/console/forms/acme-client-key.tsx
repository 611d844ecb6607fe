/** The key of an ACME client, which is shown once, and the lines that use it. */

import { CopyBlock } from '../components/copy.tsx';
import { Notice } from '../components/notice.tsx';
import { Section } from '../components/page.tsx';
import type { CreatedAcmeClient } from '../data/administration-shapes.ts';
import { AcmeSetup } from './acme-setup.tsx';

export function AcmeClientKey({ created }: { readonly created: CreatedAcmeClient }) {
  return (
    <>
      <Notice tone="warning" title="The HMAC key is shown only once">
        Copy the key or the lines below before you leave this page. Give them to {created.name} only.
      </Notice>
      <Section title="Key identifier (kid)">
        <CopyBlock text={created.kid} label="Key identifier" />
      </Section>
      <Section title="HMAC key">
        <CopyBlock text={created.hmac_key} label="HMAC key" />
      </Section>
      <Section title="Set up a program">
        <AcmeSetup client={created} directories={created.directories} hmacKey={created.hmac_key} />
      </Section>
    </>
  );
}
