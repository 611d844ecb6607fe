/** The table of all pages. The navigation lists those with a label, in this order. */
import type { ComponentType } from 'preact';
import type { Need, Person } from './data/session.ts';
import { later } from './later.tsx';
import { CertificatePage } from './pages/certificate/certificate.tsx';
import { CertificatesPage } from './pages/certificates.tsx';
import type { PageProps } from './router.ts';

export type PageEntry = {
  /** A pattern with `:parameters`. The first match wins. */
  readonly path: string;
  readonly page: ComponentType<PageProps>;
  /** The label and group in the navigation. */
  readonly label?: string;
  readonly group?: 'vault' | 'sources' | 'people';
  /** What it needs to be opened. */
  readonly needs?: Need;
  /** Whether the navigation shows it to this person; by default to all. */
  readonly isShown?: (person: Person) => boolean;
};

export const pages: readonly PageEntry[] = [
  { path: '/', page: CertificatesPage },
  { path: '/certificates', page: CertificatesPage, label: 'Certificates', group: 'vault' },
  { path: '/certificates/:name', page: CertificatePage },
  { path: '/deleted-certificates', page: later('DeletedCertificatesPage'), needs: 'whole-vault' },
  { path: '/new-certificate', page: later('NewCertificatePage') },
  { path: '/import', page: later('ImportPage') },
  { path: '/fleet', page: later('FleetPage'), label: 'Fleet', group: 'vault' },
  { path: '/fleet/:host', page: later('HostPage') },
  { path: '/fleet/endpoints/:id', page: later('EndpointPage') },
  { path: '/fleet/scans/:id', page: later('ScanPage'), needs: 'whole-vault' },
  {
    path: '/deploy-targets',
    page: later('DeployTargetsPage'),
    label: 'Deploy targets',
    group: 'vault',
    needs: 'whole-vault',
  },
  { path: '/deploy-targets/:name', page: later('DeployTargetPage'), needs: 'whole-vault' },
  { path: '/api-keys', page: later('ApiKeysPage'), label: 'API keys', group: 'vault' },
  { path: '/api-keys/new', page: later('NewApiKeyPage') },
  { path: '/api-keys/:id', page: later('ApiKeyPage') },
  { path: '/api-keys/enrollments/new', page: later('NewEnrollmentPage') },
  { path: '/api-keys/enrollments/:id', page: later('EnrollmentPage') },
  { path: '/api-keys/:id/install', page: later('InstallCommandPage') },
  { path: '/acme-clients', page: later('AcmeClientsPage'), label: 'ACME clients', group: 'vault' },
  { path: '/acme-clients/new', page: later('NewAcmeClientPage') },
  { path: '/acme-clients/:id/setup', page: later('AcmeClientSetupPage') },
  { path: '/renewals', page: later('RenewalsPage'), label: 'Renewals', group: 'vault' },
  { path: '/replacements', page: later('ReplacementsPage') },
  { path: '/replacements/new', page: later('NewReplacementPage') },
  { path: '/replacements/:id', page: later('ReplacementPage') },
  {
    path: '/audit-log',
    page: later('AuditLogPage'),
    label: 'Audit log',
    group: 'vault',
    needs: 'whole-vault',
  },
  { path: '/issuers', page: later('IssuersPage'), label: 'Issuers', group: 'sources' },
  {
    ...{ path: '/acme-accounts', page: later('AcmeAccountsPage'), label: 'ACME accounts', group: 'sources' },
    needs: 'whole-vault',
  },
  { path: '/dns-providers', page: later('DnsProvidersPage'), label: 'DNS providers', group: 'sources' },
  { path: '/notifications', page: later('NotificationsPage'), label: 'Notifications', group: 'people' },
  {
    ...{
      path: '/administrators',
      page: later('AdministratorsPage'),
      label: 'Administrators',
      group: 'people',
    },
    needs: 'whole-vault',
  },
  {
    path: '/approvals',
    page: later('ApprovalsPage'),
    label: 'Approvals',
    group: 'people',
    needs: 'whole-vault',
    isShown: (person) => person.second_approval,
  },
  { path: '/about', page: later('AboutPage'), label: 'About', group: 'people' },
  { path: '/account/sessions', page: later('SessionsPage') },
  { path: '/account/password', page: later('PasswordPage') },
  { path: '/account/sign-in-methods', page: later('SignInMethodsPage') },
];
