/** Whether the vault can use its OpenID Connect provider. */
import type { OidcProvider } from '../oidc/oidc-provider.ts';
import { OidcRefusal } from '../oidc/refusal.ts';
import type { Finding } from './finding.ts';

const hint =
  'Check that oidc_issuer is exactly as the provider writes it, DNS and the firewall, and oidc_ca_file if the certificate is from a private CA.';

const deviceHint =
  'Allow the device flow at the provider, or remove oidc_device_flow and use API keys with a role.';

export async function oidcFindings(provider: OidcProvider): Promise<Finding[]> {
  const check = 'oidc';
  const { issuer } = provider.settings;
  try {
    await provider.pageFor(provider.newChecks());
    if (provider.settings.deviceFlow === true && !(await provider.offersDeviceFlow())) {
      const message = `${issuer} is reachable, but has no device_authorization_endpoint, so "vault login --oidc" fails`;
      return [{ check, status: 'warning', message, hint: deviceHint }];
    }
  } catch (error) {
    if (!(error instanceof OidcRefusal)) throw error;
    return [{ check, status: 'failed', message: `${issuer}: ${error.summary}`, hint }];
  }
  const message = `${issuer} is reachable, and its metadata is valid`;
  return [{ check, status: 'ok', message }];
}
