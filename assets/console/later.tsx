/**
 * Loads most pages after the first one, so that the list of certificates is there sooner. All of them are in one file:
 * a console that stays open while the vault is upgraded has it already, and does not ask for files that are gone.
 */
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Button } from './components/button.tsx';
import { Notice } from './components/notice.tsx';
import { Page } from './components/page.tsx';
import { Skeleton } from './components/spinner.tsx';
import type { PageProps } from './router.ts';

type LaterPages = typeof import('./later-pages.ts').laterPages;

let pages: LaterPages | undefined;

/** Loads the later pages. Rejects if the vault is unreachable, or was upgraded and has other files. */
export async function loadLaterPages(): Promise<LaterPages> {
  pages ??= (await import('./later-pages.ts')).laterPages;
  return pages;
}

/** A page that loads the later pages if they are not there yet. */
export function later(name: keyof LaterPages): ComponentType<PageProps> {
  return function Later(props) {
    const [loaded, setLoaded] = useState(pages);
    const [isLost, setLost] = useState(false);
    useEffect(() => {
      if (loaded === undefined) loadLaterPages().then(setLoaded, () => setLost(true));
    }, []);
    if (isLost) return <LostPage />;
    if (loaded === undefined) return <Skeleton lines={8} />;
    const Found: ComponentType<PageProps> = loaded[name];
    return <Found {...props} />;
  };
}

function LostPage() {
  return (
    <Page title="Page not loaded">
      <Notice
        tone="bad"
        title="The vault did not send this page"
        actions={<Button onClick={() => location.reload()}>Reload</Button>}
      >
        It may be unreachable, or have been upgraded since you opened the console.
      </Notice>
    </Page>
  );
}
