/** Whether the vault can use its OpenID Connect provider. */
import type { OidcProvider } from '../oidc/oidc-provider.ts';
import { OidcRefusal } from '../oidc/refusal.ts';
import type { Finding } from './finding.ts';

const hint =
  'Check that oidc_issuer is exactly as the provider writes it, DNS and the firewall, and oidc_ca_file if the certificate is from a private CA.';

export async function oidcFindings(provider: OidcProvider): Promise<Finding[]> {
  const check = 'oidc';
  const { issuer } = provider.settings;
  try {
    await provider.pageFor(provider.newChecks());
  } catch (error) {
    if (!(error instanceof OidcRefusal)) throw error;
    return [{ check, status: 'failed', message: `${issuer}: ${error.summary}`, hint }];
  }
  const message = `${issuer} is reachable, and its metadata is valid`;
  return [{ check, status: 'ok', message }];
}
