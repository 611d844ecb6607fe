/** Applies the saved theme before the first paint, so that the page does not flash in the other one. */
import { applyTheme, savedTheme } from './theme.ts';

applyTheme(savedTheme());
