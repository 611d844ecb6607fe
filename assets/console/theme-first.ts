/** Runs before the first paint, so that a chosen theme does not flash in the other one. The rest is in theme.ts. */
import { applyTheme, savedTheme } from './theme.ts';

applyTheme(savedTheme());
