/** The document of `vault apply` after its references were resolved. */
import type { Secret } from '../../base/secret.ts';
import type { CertificateBundle } from '../../crypto/bundles/certificate-bundle.ts';
import type { CreateAcmeClientInput } from '../acme-server/clients/acme-client-inputs.ts';
import type { CreateDeployTargetInput } from '../deploy-targets/deploy-target-inputs.ts';
import type {
  CreateApiKeyInput,
  CreateDnsProviderInput,
  CreateIssuerInput,
  NewCertificate,
} from '../inputs.ts';
import type { IssuerSecrets } from '../issuers/issuers.ts';
import type { CreatePrivateCaInput } from '../private-ca/private-ca-inputs.ts';

/** The document, checked and with what its references lead to. */
export type WantedState = {
  readonly issuers: ReadonlyMap<string, WantedIssuer>;
  readonly dns_providers: ReadonlyMap<string, WantedDnsProvider>;
  readonly certificates: ReadonlyMap<string, NewCertificate>;
  readonly imported_certificates: ReadonlyMap<string, WantedImport>;
  readonly deploy_targets: ReadonlyMap<string, WantedDeployTarget>;
  readonly api_keys: ReadonlyMap<string, CreateApiKeyInput>;
  readonly acme_clients: ReadonlyMap<string, CreateAcmeClientInput>;
};

export type WantedImport = {
  /** Undefined where what is there stays. */
  readonly bundle: CertificateBundle | undefined;
  readonly labels: readonly string[];
};
export type WantedIssuer =
  | { readonly input: CreateIssuerInput; readonly secrets: IssuerSecrets }
  | { readonly privateCa: CreatePrivateCaInput };
export type WantedDnsProvider = {
  readonly input: CreateDnsProviderInput;
  /** Undefined for the one that the vault has. */
  readonly secret: Secret | undefined;
};
export type WantedDeployTarget = {
  readonly input: CreateDeployTargetInput;
  /** JSON of its checked settings; undefined for those that the vault has. */
  readonly secret: Secret | undefined;
};
