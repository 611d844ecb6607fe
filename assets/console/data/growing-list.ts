/**
 * Loads long lists step by step: all certificates of the vault, first those that need attention, and any other list
 * page by page.
 */
import type { Certificate } from './shapes.ts';

/** A list that may not be loaded to its end. */
export type Growing<T> = {
  readonly items: readonly T[];
  /** Whether all items are loaded. */
  readonly isWhole: boolean;
};

export type Certificates = Growing<Certificate>;

type PageOf<T> = { readonly items: readonly T[]; readonly next: string | undefined };

type Page = PageOf<Certificate>;

/** The size of the first request, which is sorted by health. */
const firstFew = 200;

/** `read` loads a page of the API; `show` receives the partial list after each page. Returns the whole list by name. */
export async function growingList(
  path: string,
  show: (part: Certificates) => void,
  read: (path: string) => Promise<Page>,
): Promise<Certificates> {
  const few = await read(`${path}?sort=status&limit=${firstFew}`);
  if (few.next === undefined) return { items: few.items.toSorted(byName), isWhole: true };
  show({ items: few.items, isWhole: false });
  // Read the rest by name: sorted by health, a certificate could be missed when its health changes in between.
  const found = new Map<string, Certificate>();
  let next: string | undefined = `${path}?limit=1000`;
  while (next !== undefined) {
    const page: Page = await read(next);
    for (const certificate of page.items) found.set(certificate.name, certificate);
    next = page.next;
    if (next === undefined) break;
    const others = few.items.filter(({ name }) => !found.has(name));
    show({ items: [...others, ...found.values()], isWhole: false });
  }
  return { items: [...found.values()], isWhole: true };
}

function byName(one: Certificate, other: Certificate): number {
  return one.name < other.name ? -1 : 1;
}

/** All items of a list, page by page. `read` and `show` as above. */
export async function growingPages<T>(
  path: string,
  show: (part: Growing<T>) => void,
  read: (path: string) => Promise<PageOf<T>>,
): Promise<Growing<T>> {
  const items: T[] = [];
  let next: string | undefined = path;
  while (next !== undefined) {
    const page: PageOf<T> = await read(next);
    items.push(...page.items);
    next = page.next;
    if (next !== undefined) show({ items: [...items], isWhole: false });
  }
  return { items, isWhole: true };
}
