/** What the vault knows of its OpenID Connect provider. */
import type { Role } from '../../base/role.ts';
import type { Secret } from '../../base/secret.ts';

/** Which role a person gets: by the values of one claim, else `byDefault`; people are refused if that is undefined. */
export type RoleMapping = {
  readonly claim: string;
  readonly values: Readonly<Record<Role, readonly string[]>>;
  readonly byDefault: Role | undefined;
};

/** A value of the claim, and the label that it confines viewers and operators to; undefined for everything. */
export type ReachValue = { readonly value: string; readonly label: string | undefined };

/** A value of the claim, and the profile (`issuer/profile`) that it confines operators to; undefined for any. */
export type ProfileValue = { readonly value: string; readonly profile: string | undefined };

export type ProviderSettings = {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: Secret<string>;
  /** Space-separated, with `openid`. */
  readonly scope: string;
  /** PEM certificates that replace the public CAs. */
  readonly ca: string | undefined;
  /** The public URL of the vault, without a trailing slash. */
  readonly publicUrl: string;
  readonly roles: RoleMapping;
  /** Without any, people reach everything; else viewers and operators with none of the values are refused. */
  readonly reach?: readonly ReachValue[];
  /** Without any, operators may use every profile; else those with none of the values are refused. */
  readonly profiles?: readonly ProfileValue[];
  /** Whether people may sign in on the command line, by the device flow. */
  readonly deviceFlow?: boolean;
};

/** Where the provider sends browsers back to. */
export const callbackPath = '/oidc/callback';
