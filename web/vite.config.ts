import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

// One file with everything inline: the C++ side fills a document into it, and a report has no network.
export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: { target: 'es2020', chunkSizeWarningLimit: 1000 },
});
