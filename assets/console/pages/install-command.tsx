/**
 * The installer command for an existing API key. The key itself is not included, because the vault stores only its
 * hash.
 */
import { ButtonLink } from '../components/button.tsx';
import { Empty } from '../components/empty.tsx';
import { Problem } from '../components/notice.tsx';
import { Page, Section } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { useList } from '../data/resource.ts';
import type { ApiKey } from '../data/shapes.ts';
import { InstallerBuilder } from '../installer/installer-builder.tsx';

export function InstallCommandPage({ params }: { readonly params: Readonly<Record<string, string>> }) {
  const { data, error, reload } = useList<ApiKey>('/api-keys');
  const apiKey = data?.find(({ id }) => String(id) === params.id);
  const back = <ButtonLink href="/api-keys">View all API keys</ButtonLink>;
  return (
    <Page title={apiKey ? `Install with ${apiKey.name}` : 'Installer command'} actions={back}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data && !apiKey && (
        <Empty title="API key not found" actions={back}>
          <p>The key may have been deleted.</p>
        </Empty>
      )}
      {apiKey && (
        <Section title="Install on a machine">
          <InstallerBuilder apiKey={apiKey} />
        </Section>
      )}
    </Page>
  );
}
