/** The table of all pages. The navigation lists those with a label, in this order. */
import type { ComponentType } from 'preact';
import type { Need, Person } from './data/session.ts';
import { AboutPage } from './pages/about.tsx';
import { PasswordPage } from './pages/account/password.tsx';
import { SessionsPage } from './pages/account/sessions.tsx';
import { SignInMethodsPage } from './pages/account/sign-in-methods.tsx';
import { AcmeAccountsPage } from './pages/acme-accounts.tsx';
import { AcmeClientSetupPage } from './pages/acme-client-setup.tsx';
import { AcmeClientsPage } from './pages/acme-clients.tsx';
import { AdministratorsPage } from './pages/administrators.tsx';
import { ApiKeyPage } from './pages/api-key.tsx';
import { ApiKeysPage } from './pages/api-keys.tsx';
import { ApprovalsPage } from './pages/approvals.tsx';
import { AuditLogPage } from './pages/audit-log.tsx';
import { CertificatePage } from './pages/certificate/certificate.tsx';
import { CertificatesPage } from './pages/certificates.tsx';
import { DeletedCertificatesPage } from './pages/deleted-certificates.tsx';
import { DeployTargetPage } from './pages/deploy-targets/deploy-target.tsx';
import { DeployTargetsPage } from './pages/deploy-targets/deploy-targets.tsx';
import { DnsProvidersPage } from './pages/dns-providers.tsx';
import { EndpointPage } from './pages/endpoints/endpoint.tsx';
import { EnrollmentPage } from './pages/enrollments/enrollment.tsx';
import { NewEnrollmentPage } from './pages/enrollments/new-enrollment.tsx';
import { FleetPage } from './pages/fleet.tsx';
import { HostPage } from './pages/host.tsx';
import { ImportPage } from './pages/import.tsx';
import { InstallCommandPage } from './pages/install-command.tsx';
import { IssuersPage } from './pages/issuers.tsx';
import { NewAcmeClientPage } from './pages/new-acme-client.tsx';
import { NewApiKeyPage } from './pages/new-api-key.tsx';
import { NewCertificatePage } from './pages/new-certificate.tsx';
import { NotificationsPage } from './pages/notifications.tsx';
import { RenewalsPage } from './pages/renewals.tsx';
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
  { path: '/deleted-certificates', page: DeletedCertificatesPage, needs: 'whole-vault' },
  { path: '/new-certificate', page: NewCertificatePage },
  { path: '/import', page: ImportPage },
  { path: '/fleet', page: FleetPage, label: 'Fleet', group: 'vault' },
  { path: '/fleet/:host', page: HostPage },
  { path: '/fleet/endpoints/:id', page: EndpointPage },
  {
    path: '/deploy-targets',
    page: DeployTargetsPage,
    label: 'Deploy targets',
    group: 'vault',
    needs: 'whole-vault',
  },
  { path: '/deploy-targets/:name', page: DeployTargetPage, needs: 'whole-vault' },
  { path: '/api-keys', page: ApiKeysPage, label: 'API keys', group: 'vault' },
  { path: '/api-keys/new', page: NewApiKeyPage },
  { path: '/api-keys/:id', page: ApiKeyPage },
  { path: '/api-keys/enrollments/new', page: NewEnrollmentPage },
  { path: '/api-keys/enrollments/:id', page: EnrollmentPage },
  { path: '/api-keys/:id/install', page: InstallCommandPage },
  { path: '/acme-clients', page: AcmeClientsPage, label: 'ACME clients', group: 'vault' },
  { path: '/acme-clients/new', page: NewAcmeClientPage },
  { path: '/acme-clients/:id/setup', page: AcmeClientSetupPage },
  { path: '/renewals', page: RenewalsPage, label: 'Renewals', group: 'vault' },
  { path: '/audit-log', page: AuditLogPage, label: 'Audit log', group: 'vault', needs: 'whole-vault' },
  { path: '/issuers', page: IssuersPage, label: 'Issuers', group: 'sources' },
  {
    ...{ path: '/acme-accounts', page: AcmeAccountsPage, label: 'ACME accounts', group: 'sources' },
    needs: 'whole-vault',
  },
  { path: '/dns-providers', page: DnsProvidersPage, label: 'DNS providers', group: 'sources' },
  { path: '/notifications', page: NotificationsPage, label: 'Notifications', group: 'people' },
  {
    ...{ path: '/administrators', page: AdministratorsPage, label: 'Administrators', group: 'people' },
    needs: 'whole-vault',
  },
  {
    path: '/approvals',
    page: ApprovalsPage,
    label: 'Approvals',
    group: 'people',
    needs: 'whole-vault',
    isShown: (person) => person.second_approval,
  },
  { path: '/about', page: AboutPage, label: 'About', group: 'people' },
  { path: '/account/sessions', page: SessionsPage },
  { path: '/account/password', page: PasswordPage },
  { path: '/account/sign-in-methods', page: SignInMethodsPage },
];
