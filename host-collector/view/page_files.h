/* SPDX-License-Identifier: GPL-2.0-only */
/* The texts of view/page/, turned into C by the build (embed.cmake). */
#ifndef VIEW_PAGE_FILES_H
#define VIEW_PAGE_FILES_H

extern const char page_file_report_css[];
extern const char page_file_draw_js[];
extern const char page_file_timeline_js[];
extern const char page_file_figures_js[];
extern const char page_file_report_js[];
extern const char page_file_flame_css[];
extern const char page_file_flame_js[];

#endif
