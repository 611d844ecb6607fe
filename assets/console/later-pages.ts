/** The pages that browsers get in a file of their own, after the first page (later.tsx). */
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
import { NewReplacementPage } from './pages/replacements/new-replacement.tsx';
import { ReplacementPage } from './pages/replacements/replacement.tsx';
import { ReplacementsPage } from './pages/replacements/replacements.tsx';
import { ScanPage } from './pages/scans/scan.tsx';

export const laterPages = {
  AboutPage,
  PasswordPage,
  SessionsPage,
  SignInMethodsPage,
  AcmeAccountsPage,
  AcmeClientSetupPage,
  AcmeClientsPage,
  AdministratorsPage,
  ApiKeyPage,
  ApiKeysPage,
  ApprovalsPage,
  AuditLogPage,
  DeletedCertificatesPage,
  DeployTargetPage,
  DeployTargetsPage,
  DnsProvidersPage,
  EndpointPage,
  EnrollmentPage,
  NewEnrollmentPage,
  FleetPage,
  HostPage,
  ImportPage,
  InstallCommandPage,
  IssuersPage,
  NewAcmeClientPage,
  NewApiKeyPage,
  NewCertificatePage,
  NotificationsPage,
  RenewalsPage,
  ReplacementsPage,
  NewReplacementPage,
  ReplacementPage,
  ScanPage,
};
