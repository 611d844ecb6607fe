/** The settings of sign-in by OpenID Connect: the provider, and which of its people get which role. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { OperatorError } from '../../base/operator-error.ts';
import { type Role, roles } from '../../base/role.ts';
import { Secret } from '../../base/secret.ts';
import { isSecureUrl } from '../../base/secure-url.ts';
import { describeSystemError } from '../../base/system-error.ts';
import {
  callbackPath,
  type ProviderSettings,
  type RoleMapping,
} from '../../domain/oidc/provider-settings.ts';
import { refuseExposedKeyFile } from '../terminal/private-files.ts';
import { listed, listedProfiles, listedReach } from './oidc-values.ts';
import { type Found, truth } from './setting-values.ts';

export const oidcOptions = {
  'oidc-issuer': {
    type: 'string',
    valueHint: 'URL',
    description:
      'let people of this OpenID Connect provider sign in, such as https://login.example.com (default: off)',
  },
  'oidc-client-id': {
    type: 'string',
    valueHint: 'ID',
    description: 'the client id that the provider gave the vault',
  },
  'oidc-client-secret-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'the file with the client secret that the provider gave the vault',
  },
  'oidc-scope': {
    type: 'string',
    valueHint: 'SCOPES',
    description: 'the scopes to request, separated by spaces (default: openid profile email)',
  },
  'oidc-ca-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'trust only these PEM certificates for the provider (default: the public CAs)',
  },
  'oidc-role-claim': {
    type: 'string',
    valueHint: 'CLAIM',
    description: 'the claim that decides about the role of a person (default: groups)',
  },
  'oidc-admins': {
    type: 'string',
    valueHint: 'VALUE,...',
    description: 'give the role admin to people with one of these values in the claim (default: none)',
  },
  'oidc-operators': {
    type: 'string',
    valueHint: 'VALUE,...',
    description: 'give the role operator to people with one of these values in the claim (default: none)',
  },
  'oidc-viewers': {
    type: 'string',
    valueHint: 'VALUE,...',
    description: 'give the role viewer to people with one of these values in the claim (default: none)',
  },
  'oidc-default-role': {
    type: 'string',
    valueHint: 'ROLE',
    values: ['none', ...roles],
    description: 'the role of everyone else at the provider; none refuses them (default: none)',
  },
  'oidc-reach': {
    type: 'string',
    valueHint: 'VALUE:LABEL,...',
    description:
      'confine viewers and operators with this value in the claim to a label, such as web-team:team=web, or * for everything; others are refused (default: everything)',
  },
  'oidc-profiles': {
    type: 'string',
    valueHint: 'VALUE:PROFILE,...',
    description:
      'confine operators with this value in the claim to a profile of a private CA, such as web-team:local-ca/web, or * for any; others are refused (default: any)',
  },
  'oidc-device-flow': {
    type: 'boolean',
    description: 'let people sign in with "vault login --oidc" on other machines (default: off)',
  },
} as const;

export type OidcSettings = Omit<ProviderSettings, 'clientSecret' | 'ca'> & {
  readonly clientSecretFile: string;
  readonly caFile: string | undefined;
};

type Name = keyof typeof oidcOptions;

/** Undefined if the provider is not set. Throws OperatorError that names the invalid setting. */
export function oidcSettings(
  setting: (name: Name) => Found | undefined,
  publicUrl: string | undefined,
): OidcSettings | undefined {
  const issuer = setting('oidc-issuer');
  if (issuer === undefined) {
    for (const name of Object.keys(oidcOptions) as Name[]) {
      const found = setting(name);
      if (found === undefined) continue;
      throw new OperatorError(`${found.from} is set, but no provider`, {
        hint: 'Set --oidc-issuer (in vault.yaml: oidc_issuer), too.',
      });
    }
    return undefined;
  }
  const needed = (name: Name) => {
    const found = setting(name);
    if (found !== undefined) return found.value;
    throw new OperatorError(`${issuer.from} is set, but --${name} (in vault.yaml: ${key(name)}) is missing`);
  };
  if (publicUrl === undefined) {
    throw new OperatorError(
      `${issuer.from} is set, but --public-url (in vault.yaml: public_url) is missing`,
      {
        hint: `The provider sends browsers back to ${callbackPath} at this URL.`,
      },
    );
  }
  const caFile = setting('oidc-ca-file');
  return {
    issuer: issuerUrl(issuer),
    clientId: needed('oidc-client-id'),
    clientSecretFile: resolve(needed('oidc-client-secret-file')),
    scope: scopes(setting('oidc-scope')),
    caFile: caFile && resolve(caFile.value),
    publicUrl,
    roles: roleMapping(setting, issuer),
    reach: listedReach(setting('oidc-reach')),
    profiles: listedProfiles(setting('oidc-profiles')),
    deviceFlow: truth(setting('oidc-device-flow')),
  };
}

/** The settings with the contents of their files. Throws OperatorError that names the file. */
export function readProviderSettings({ clientSecretFile, caFile, ...rest }: OidcSettings): ProviderSettings {
  refuseExposedKeyFile(clientSecretFile);
  const secret = contentOf('--oidc-client-secret-file', clientSecretFile).trim();
  // A client secret has visible ASCII characters (RFC 6749 appendix A.2).
  if (!/^[\x20-\x7e]{1,1000}$/.test(secret)) {
    throw new OperatorError(`--oidc-client-secret-file: ${clientSecretFile} holds no valid secret`, {
      hint: 'Write the client secret that the provider shows into the file, on one line.',
    });
  }
  const ca = caFile === undefined ? undefined : contentOf('--oidc-ca-file', caFile);
  if (ca !== undefined && !ca.includes('-----BEGIN CERTIFICATE-----')) {
    throw new OperatorError(`--oidc-ca-file: ${caFile} has no PEM certificate`, {
      hint: 'Use a file with -----BEGIN CERTIFICATE-----.',
    });
  }
  return { ...rest, clientSecret: new Secret(secret), ca };
}

function contentOf(option: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new OperatorError(`${option}: cannot read ${path}: ${describeSystemError(error)}`, {
      hint: 'Check the file name and its permissions.',
      cause: error,
    });
  }
}

/** Exactly as the provider writes it: a slash at the end counts. */
function issuerUrl({ value, from }: Found): string {
  if (isSecureUrl(value) && new URL(value).search === '') return value;
  throw new OperatorError(`${from}: "${value}" is not the https URL of a provider`, {
    hint: 'Use the issuer as the provider names it, such as https://login.example.com/realms/main.',
  });
}

function scopes(found: Found | undefined): string {
  if (found === undefined) return 'openid profile email';
  const names = found.value.split(' ').filter((name) => name !== '');
  if (names.includes('openid') && names.every((name) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(name))) {
    return names.join(' ');
  }
  throw new OperatorError(`${found.from}: "${found.value}" is not a list of scopes with openid`, {
    hint: 'Separate the scopes by spaces, such as "openid profile email groups".',
  });
}

function roleMapping(setting: (name: Name) => Found | undefined, issuer: Found): RoleMapping {
  const byDefault = defaultRole(setting('oidc-default-role'));
  const values = {
    viewer: listed(setting('oidc-viewers')),
    operator: listed(setting('oidc-operators')),
    admin: listed(setting('oidc-admins')),
  };
  if (byDefault === undefined && Object.values(values).flat().length === 0) {
    throw new OperatorError(`${issuer.from} is set, but no one at the provider has a role`, {
      hint: 'Set --oidc-admins (in vault.yaml: oidc_admins), such as the name of a group.',
    });
  }
  return { claim: setting('oidc-role-claim')?.value ?? 'groups', values, byDefault };
}

function defaultRole(found: Found | undefined): Role | undefined {
  if (found === undefined || found.value === 'none') return undefined;
  const role = roles.find((known) => known === found.value);
  if (role !== undefined) return role;
  throw new OperatorError(`${found.from}: "${found.value}" is not a role`, {
    hint: `Use none, ${roles.join(', ')}.`,
  });
}

function key(name: Name): string {
  return name.replaceAll('-', '_');
}
