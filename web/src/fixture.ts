// For tests: the documents under fixtures/.
import type { Doc } from './types';

const texts = import.meta.glob<string>('../fixtures/*.json', { eager: true, query: '?raw', import: 'default' });

export const fixtureTexts = Object.entries(texts);

export function fixture(name: string): Doc {
  return JSON.parse(texts[`../fixtures/${name}.json`]!) as Doc;
}
