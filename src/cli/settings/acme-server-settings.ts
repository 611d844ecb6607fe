/**
 * The settings of the ACME server: where it validates challenges, which CAA records permit it to issue, and its terms.
 */
import { isAddress, parseIdentifier } from '../../base/identifier.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { ValidationRules } from '../../net/validation-guard.ts';
import { networksIn } from './endpoint-settings.ts';
import { allowedAddresses } from './outbound-settings.ts';
import type { Found } from './setting-values.ts';

export const acmeServerOptions = {
  'acme-validation-allow': {
    type: 'string',
    valueHint: 'ADDRESS[:PORT],...',
    description:
      'validate challenges of ACME clients at these addresses, although they are loopback, link-local, metadata or forbidden ones (default: none)',
  },
  'acme-validation-forbid': {
    type: 'string',
    valueHint: 'NETWORK,...',
    description:
      'never validate challenges of ACME clients in these networks, such as 10.9.0.0/16 (default: none)',
  },
  'acme-caa-identity': {
    type: 'string',
    valueHint: 'NAME,...',
    description:
      'check CAA records before issuing to ACME clients; they must name one of these (default: CAA is not checked)',
  },
  'acme-terms-of-service': {
    type: 'string',
    valueHint: 'URL',
    description:
      'show this page as the terms of service of the ACME server; new accounts must agree to them (default: none)',
  },
} as const;

export type AcmeServerSettings = ValidationRules & {
  readonly caaIdentities: readonly string[];
  /** New accounts must agree to the terms on this page. */
  readonly termsOfService: string | undefined;
  /** Where clients answer challenges. No setting changes it, because RFC 8555 and RFC 8737 fix the ports. */
  readonly ports: { readonly http: number; readonly tls: number };
};

/** Throws OperatorError that names the invalid setting. */
export function acmeServerSettings(
  setting: (name: keyof typeof acmeServerOptions) => Found | undefined,
): AcmeServerSettings {
  const allowed = setting('acme-validation-allow');
  return {
    allowed: allowed === undefined ? [] : allowedAddresses(allowed),
    forbidden: networksIn(setting('acme-validation-forbid')),
    caaIdentities: listed(setting('acme-caa-identity'), (part, from) => {
      const name = parseIdentifier(part);
      if (name?.includes('.') === true && !name.startsWith('*') && !isAddress(name)) return name;
      throw new OperatorError(`${from}: "${part}" is not the name of a CA`, {
        hint: 'Use none, or the names that your CAA records contain, such as ca.example.com.',
      });
    }),
    termsOfService: webPage(setting('acme-terms-of-service')),
    ports: { http: 80, tls: 443 },
  };
}

function webPage(found: Found | undefined): string | undefined {
  if (found === undefined || found.value === 'none') return undefined;
  const url = URL.parse(found.value);
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === '') return url.href;
  throw new OperatorError(`${found.from}: "${found.value}" is not an http or https URL`, {
    hint: 'Use none, or the URL of a page such as https://ca.example.com/terms.',
  });
}

function listed<T>(found: Found | undefined, read: (part: string, from: string) => T): T[] {
  if (found === undefined || found.value === 'none') return [];
  return found.value.split(',').map((part) => read(part.trim(), found.from));
}
