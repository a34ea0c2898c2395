/* SPDX-License-Identifier: GPL-2.0-only */
/* The files of view/page/, which the build turns into C (embed.cmake). */
#ifndef VIEW_PAGE_FILES_H
#define VIEW_PAGE_FILES_H

extern const char page_file_report_css[];
extern const char page_file_draw_js[];
extern const char page_file_lanes_js[];
extern const char page_file_timeline_js[];
extern const char page_file_figures_js[];
extern const char page_file_stacks_js[];
extern const char page_file_report_js[];
extern const char page_file_flame_css[];
extern const char page_file_flame_js[];

#endif
