/** Installer options for common servers, the same as in docs/reference/client-installer.md. */
import type { InstallerChoices } from './shell-command.ts';

type Recipe = {
  readonly title: string;
  /** The lines for the server's own configuration. */
  readonly configuration: string;
} & Pick<
  InstallerChoices,
  'files' | 'keystorePasswordFile' | 'destination' | 'reloadCommand' | 'owner' | 'group' | 'mode' | 'verify'
>;

const pair = (certificate: string, key: string) => [
  { artifact: 'fullchain.crt', output: certificate },
  { artifact: 'private.key', output: key },
];

const root = { keystorePasswordFile: '', owner: '', group: '', mode: '' };

export const recipes = {
  nginx: {
    ...root,
    title: 'nginx',
    files: pair('tls.crt', 'tls.key'),
    destination: '/etc/nginx/tls',
    reloadCommand: 'nginx -t && systemctl reload nginx',
    verify: 'localhost:443',
    configuration: 'ssl_certificate     /etc/nginx/tls/tls.crt;\nssl_certificate_key /etc/nginx/tls/tls.key;',
  },
  apache: {
    ...root,
    title: 'Apache',
    files: pair('tls.crt', 'tls.key'),
    destination: '/etc/apache2/tls',
    reloadCommand: 'apachectl configtest && systemctl reload apache2',
    verify: 'localhost:443',
    configuration:
      'SSLCertificateFile    /etc/apache2/tls/tls.crt\nSSLCertificateKeyFile /etc/apache2/tls/tls.key',
  },
  haproxy: {
    ...root,
    title: 'HAProxy',
    files: pair('web.pem', 'web.pem.key'),
    destination: '/etc/haproxy/tls',
    reloadCommand: 'haproxy -c -q -f /etc/haproxy/haproxy.cfg && systemctl reload haproxy',
    verify: 'localhost:443',
    configuration: 'bind :443 ssl crt /etc/haproxy/tls/web.pem',
  },
  postfix: {
    ...root,
    title: 'Postfix',
    files: pair('tls.crt', 'tls.key'),
    destination: '/etc/postfix/tls',
    reloadCommand: 'postfix check && postfix reload',
    verify: 'localhost:25',
    configuration: 'smtpd_tls_chain_files = /etc/postfix/tls/tls.key, /etc/postfix/tls/tls.crt',
  },
  postgresql: {
    keystorePasswordFile: '',
    title: 'PostgreSQL',
    files: pair('server.crt', 'server.key'),
    destination: '/etc/postgresql/tls',
    owner: 'postgres',
    group: 'postgres',
    mode: '',
    reloadCommand: 'systemctl reload postgresql',
    verify: 'localhost:5432',
    configuration:
      "ssl_cert_file = '/etc/postgresql/tls/server.crt'\nssl_key_file = '/etc/postgresql/tls/server.key'",
  },
  tomcat: {
    title: 'Tomcat',
    files: [{ artifact: 'keystore.p12', output: '' }],
    keystorePasswordFile: '/root/keystore-password',
    destination: '/etc/tomcat10/tls',
    owner: 'tomcat',
    group: 'tomcat',
    mode: '',
    reloadCommand: 'systemctl restart tomcat10',
    verify: '',
    configuration: `<Connector port="8443" SSLEnabled="true"><SSLHostConfig>
  <Certificate certificateKeystoreFile="/etc/tomcat10/tls/keystore.p12" certificateKeystoreType="PKCS12"
               certificateKeystorePassword="…" />
</SSLHostConfig></Connector>`,
  },
  proxmox: {
    ...root,
    title: 'Proxmox VE',
    files: pair('pveproxy-ssl.pem', 'pveproxy-ssl.key'),
    destination: '/etc/pve/local',
    reloadCommand: 'systemctl reload-or-restart pveproxy',
    verify: 'localhost:8006',
    configuration: '',
  },
  other: {
    ...root,
    title: 'Other',
    files: pair('', ''),
    destination: '/etc/ssl/vault',
    reloadCommand: '',
    verify: '',
    configuration: '',
  },
} as const satisfies Record<string, Recipe>;

export type RecipeName = keyof typeof recipes;

export const recipeOf = (name: string): Recipe | undefined =>
  Object.hasOwn(recipes, name) ? recipes[name as RecipeName] : undefined;
