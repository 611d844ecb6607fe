/**
 * How programs are set up as ACME clients of the vault: the lines that the console shows and
 * docs/how-to/acme-clients.md has. A test compares the page with them.
 */

/** What the lines have that differs from client to client. */
export type AcmeRecipeValues = {
  /** The directory of the issuer. */
  readonly directory: string;
  readonly kid: string;
  readonly hmacKey: string;
  /** A name to order. */
  readonly domain: string;
};

export type AcmeRecipe = {
  readonly title: string;
  /** Where the lines belong: a shell, or a file. */
  readonly place: string;
  readonly lines: (values: AcmeRecipeValues) => string;
};

/** The root certificate of the private CA on the machine of the client. */
export const acmeRootFile = '/etc/ssl/vault-ca.crt';

const contact = 'admin@example.com';

/** The URL of an issuer's directory. */
export function acmeDirectoryUrl(baseUrl: string, issuer: string): string {
  return `${baseUrl.replace(/\/$/, '')}/acme/${issuer}/directory`;
}

export const acmeRecipes = {
  caddy: {
    title: 'Caddy',
    place: 'Caddyfile',
    lines: ({ directory, kid, hmacKey, domain }) => `{
\temail ${contact}
\tacme_ca ${directory}
\tacme_ca_root ${acmeRootFile}
\tacme_eab {
\t\tkey_id ${kid}
\t\tmac_key ${hmacKey}
\t}
}

${domain} {
\trespond "Hello"
}`,
  },
  certbot: {
    title: 'certbot',
    place: 'shell',
    lines: ({ directory, kid, hmacKey, domain }) => `REQUESTS_CA_BUNDLE=${acmeRootFile} certbot certonly \\
  --server ${directory} \\
  --eab-kid ${kid} --eab-hmac-key ${hmacKey} \\
  --standalone --agree-tos --email ${contact} --no-eff-email --domain '${domain}'`,
  },
  lego: {
    title: 'lego',
    place: 'shell',
    lines: ({ directory, kid, hmacKey, domain }) => `LEGO_CA_CERTIFICATES=${acmeRootFile} lego \\
  --server ${directory} \\
  --eab --kid ${kid} --hmac ${hmacKey} \\
  --accept-tos --email ${contact} --http --domains '${domain}' run`,
  },
  'acme-sh': {
    title: 'acme.sh',
    place: 'shell',
    lines: ({ directory, kid, hmacKey, domain }) => `acme.sh --register-account --server ${directory} \\
  --eab-kid ${kid} --eab-hmac-key ${hmacKey} \\
  --email ${contact} --ca-bundle ${acmeRootFile}
acme.sh --issue --server ${directory} \\
  --ca-bundle ${acmeRootFile} --webroot /var/www/html --domain '${domain}'`,
  },
  traefik: {
    title: 'Traefik',
    place: 'traefik.yml',
    lines: ({ directory, kid, hmacKey }) => `certificatesResolvers:
  vault:
    acme:
      email: ${contact}
      storage: /var/lib/traefik/acme.json
      caServer: ${directory}
      caCertificates:
        - ${acmeRootFile}
      eab:
        kid: ${kid}
        hmacEncoded: ${hmacKey}
      tlsChallenge: {}`,
  },
  'cert-manager': {
    title: 'cert-manager',
    place: 'Kubernetes manifest',
    lines: ({ directory, kid, hmacKey }) => `apiVersion: v1
kind: Secret
metadata:
  name: vault-acme
  namespace: cert-manager
stringData:
  hmac-key: ${hmacKey}
---
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata:
  name: vault
spec:
  acme:
    server: ${directory}
    # The output of: base64 -w0 ${acmeRootFile}
    caBundle: BASE64
    externalAccountBinding:
      keyID: ${kid}
      keySecretRef:
        name: vault-acme
        key: hmac-key
    privateKeySecretRef:
      name: vault-acme-account
    solvers:
      - http01:
          ingress:
            ingressClassName: nginx`,
  },
  nginx: {
    title: 'nginx',
    place: 'nginx.conf, with ngx_http_acme_module',
    lines: ({ directory, kid, hmacKey, domain }) => `resolver 127.0.0.1:53;

acme_issuer vault {
    uri ${directory};
    ssl_trusted_certificate ${acmeRootFile};
    external_account_key ${kid} data:${hmacKey};
    contact ${contact};
    state_path /var/cache/nginx/acme-vault;
    accept_terms_of_service;
}

server {
    listen 443 ssl;
    server_name ${domain};
    acme_certificate vault;
    ssl_certificate $acme_certificate;
    ssl_certificate_key $acme_certificate_key;
    ssl_certificate_cache max=2;
}`,
  },
  'win-acme': {
    title: 'win-acme',
    place: 'command prompt of Windows',
    lines: ({ directory, kid, hmacKey, domain }) => `wacs.exe --baseuri ${directory} ^
  --eab-key-identifier ${kid} --eab-key ${hmacKey} ^
  --accepttos --emailaddress ${contact} ^
  --source manual --host ${domain} --validation selfhosting --store certificatestore`,
  },
  proxmox: {
    title: 'Proxmox VE',
    place: 'shell of the node',
    lines: ({ directory, kid, hmacKey, domain }) => `pvenode acme account register vault ${contact} \\
  --directory ${directory} \\
  --eab-kid ${kid} --eab-hmac-key ${hmacKey}
pvenode config set --acme account=vault,domains=${domain}
pvenode acme cert order`,
  },
} as const satisfies Readonly<Record<string, AcmeRecipe>>;

/** A name to show in the lines: the first that the patterns permit. */
export function exampleDomain(patterns: readonly string[]): string {
  const [first = 'www.example.com'] = patterns;
  if (first === '*') return 'www.example.com';
  if (first.startsWith('*.')) return `www.${first.slice(2)}`;
  return /\/\d+$/.test(first) ? (first.split('/')[0] ?? first) : first;
}
